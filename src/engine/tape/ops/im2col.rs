//! `im2col` (`aten/src/ATen/native/cuda/{Im2Col,Col2Im}.cu`).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;

impl Tape {
    /// `torch.nn.functional.unfold(x, side, stride=side)`: [n, c, h, w] → [n, c × side², h ÷ side × w ÷ side]. Input and
    /// gradient are copied if they are not contiguous; squares have to cover the input.
    pub fn unfold(&self, x: &Tensor, side: u64) -> Tensor {
        let rec = self.record("Im2ColBackward0", &[x]);
        let shape = *x.shape();
        let [n, c, h, w] = [shape[0], shape[1], shape[2], shape[3]];
        let side = side.max(1);
        let dense = self.dense_copy(x);
        let out = self.empty([n, c * side * side, (h / side) * (w / side)], x.dtype(), "im2col");
        drop(dense);
        rec.finish(self, out, move |t, bw| {
            let dx = t.empty(shape, bw.grad().dtype(), "col2im");
            drop(t.dense_copy(bw.grad()));
            smallvec![Some(dx)]
        })
    }
}
