//! Weights in 4 bits with double quantisation, as bitsandbytes holds and multiplies them
//! (`bitsandbytes/nn/modules.py`, `autograd/_functions.py` and `backends/cuda/ops.py`, 0.50).

use smallvec::smallvec;

use super::builder::Builder;
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// Weights that share a one-byte scale.
const BLOCK: u64 = 64;

/// Scales that share an fp32 scale.
const NESTED_BLOCK: u64 = 256;

/// Most rows that a fused kernel takes; above, the weight is dequantised in full (`_gemm_4bit_custom_max_m`).
const MOST_FUSED_ROWS: u64 = 1536;

/// A weight [output, input] in NF4 (`bnb.nn.Linear4bit` with `bnb_4bit_use_double_quant`).
pub(super) struct Nf4 {
    packed: Tensor,
    state: State,
    shape: [u64; 2],
    /// Type of the products (`bnb_4bit_compute_dtype`).
    compute: DType,
}

/// `QuantState`: scales of blocks of weights, which are quantised themselves (`absmax`), the scales of those
/// (`_nested_absmax`), the code tables of both (`_tables`), and the mean that was subtracted from the scales (`_offset`).
#[derive(Clone)]
struct State {
    absmax: Tensor,
    _nested_absmax: Tensor,
    _tables: [Tensor; 2],
    _offset: Tensor,
    /// The values of a byte, which bitsandbytes keeps for all weights from the first on (`functional.name2qmap`).
    _values: Tensor,
}

impl Nf4 {
    /// Loads a weight in `compute` and quantises it (`Params4bit._quantize`).
    pub fn new(b: &Builder, shape: [u64; 2], compute: DType) -> Self {
        let t = b.tape();
        t.pack_weights(compute);
        let n = shape[0] * shape[1];
        let blocks = n.div_ceil(BLOCK);
        let loaded = t.empty(shape, compute, "weight as loaded");
        let scales = t.empty([blocks], DType::F32, "scales");
        let packed = b.weight_of("weight", [n.div_ceil(2), 1], DType::U8);
        let code = b.buffer("quant_map", [16], DType::F32);
        let offset = b.buffer("nested_offset", [], DType::F32);
        let centred = t.empty([blocks], DType::F32, "scales around their mean");
        let values = b.byte_values();
        let nested_absmax = b.buffer("nested_absmax", [blocks.div_ceil(NESTED_BLOCK)], DType::F32);
        let absmax = b.buffer("absmax", [blocks], DType::U8);
        let nested_code = b.buffer("nested_quant_map", [256], DType::F32);
        drop((centred, scales, loaded));
        let state = State {
            absmax,
            _nested_absmax: nested_absmax,
            _tables: [code, nested_code],
            _offset: offset,
            _values: values,
        };
        Self {
            packed,
            state,
            shape,
            compute,
        }
    }

    /// Type of the products.
    pub const fn compute(&self) -> DType {
        self.compute
    }

    /// `Linear4bit.forward`: in the compute type, then cast back to the type of `x`.
    pub fn forward(&self, t: &Tape, x: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let inner = t.to_dtype(x, self.compute);
        let out = self.multiply(t, &inner, bias);
        let out = t.to_dtype(&out, x.dtype());
        drop(inner);
        out
    }

    /// Dequantises the weight, in the compute type (`dequantize_4bit`).
    pub fn in_full(&self, t: &Tape) -> Tensor {
        t.no_grad(|| {
            let scales = t.empty([self.state.absmax.numel()], DType::F32, "scales");
            let weight = t.empty(self.shape, self.compute, "4-bit weight in full");
            drop(scales);
            weight
        })
    }

    /// `MatMul4Bit`: saves nothing of the input; backward needs only the weight, dequantised again.
    fn multiply(&self, t: &Tape, x: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let rec = t.record("MatMul4Bit", &[x]);
        let rows = x.numel() / x.last().max(1);
        if x.last() != self.shape[1] {
            t.misfit("a linear layer in 4 bits", &[x.shape(), &self.shape]);
        }
        let out = t.no_grad(|| {
            if fuses(t.gpu().capability, rows, self.shape) {
                let mut shape = *x.shape();
                shape[x.dim() - 1] = self.shape[0];
                return t.empty(shape, x.dtype(), "product with 4-bit weights");
            }
            let scales = t.empty([self.state.absmax.numel()], DType::F32, "scales");
            let moved = t.empty([self.state.absmax.numel()], DType::F32, "scales with their mean");
            let weight = t.empty(self.shape, x.dtype(), "4-bit weight in full");
            let out = t.linear(x, &weight, bias);
            drop((weight, moved, scales));
            out
        });
        let (shape, compute, packed, state) = (self.shape, self.compute, self.packed.clone(), self.state.clone());
        rec.finish(t, out, move |t, bw| {
            let g = bw.grad();
            let scales = t.empty([state.absmax.numel()], DType::F32, "scales");
            let weight = t.empty(shape, compute, "4-bit weight in full");
            drop((scales, packed));
            let weight = t.to_dtype(&weight, g.dtype());
            smallvec![Some(t.matmul(g, &weight))]
        })
    }
}

/// Allocates what it takes to quantise a weight [output, input] that comes from the host in this type, and frees it all. The
/// quantised weight is freed too: it replaces one of the same size, which stays allocated in its stead.
pub fn quantised_once(t: &Tape, shape: [u64; 2], dtype: DType) {
    let n = shape[0] * shape[1];
    let blocks = n.div_ceil(BLOCK);
    let weight = t.empty(shape, dtype, "weight as loaded");
    let scales = t.empty([blocks], DType::F32, "scales");
    let packed = t.empty([n.div_ceil(2), 1], DType::U8, "weight");
    let centred = t.empty([blocks], DType::F32, "scales around their mean");
    let nested = t.empty([blocks.div_ceil(NESTED_BLOCK)], DType::F32, "nested_absmax");
    let absmax = t.empty([blocks], DType::U8, "absmax");
    drop((absmax, nested, centred, packed, scales, weight));
}

/// Returns true if a kernel multiplies by 4-bit weights directly (`_gemm_4bit_use_custom_cuda`). For more than four
/// rows its thresholds are those of Hopper; on other cards the weight is assumed to be dequantised in full, which never
/// takes less.
fn fuses(capability: (u32, u32), rows: u64, [outputs, inputs]: [u64; 2]) -> bool {
    const SMS: u64 = 132;
    if !inputs.is_multiple_of(BLOCK) || rows > MOST_FUSED_ROWS {
        return false;
    }
    if rows <= 4 {
        return true;
    }
    if capability.0 != 9 {
        return false;
    }
    let waves = outputs.div_ceil(64);
    if outputs * inputs < 4 << 20 {
        return match () {
            () if inputs * 2 < outputs => rows <= if waves * 3 < SMS { 512 } else { 320 },
            () if waves * 4 <= SMS => rows <= 32,
            () => waves * 2 <= SMS && rows <= 16,
        };
    }
    match () {
        () if waves >= SMS * 3 => rows <= 64,
        () if waves >= SMS * 2 => rows <= 48,
        () if waves >= SMS => rows <= 32,
        () if waves >= SMS / 2 => (inputs < outputs || waves * 4 >= SMS * 3) && rows <= 16,
        () => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::{LigerPatches, Trained};
    use crate::setup::Freeze;
    use crate::tape::Gpu;

    fn builder(tape: &Tape) -> Builder {
        let policy = Trained {
            freeze: Freeze::Qlora,
            dtype: DType::F32,
            frozen: DType::F32,
            nf4: Some(DType::Bf16),
            causal_conv1d: false,
            liger: LigerPatches::NOTHING,
        };
        Builder::new(tape, policy)
    }

    /// A projection of 4096 by 4096: half a byte for each weight, a byte for 64 of them, four bytes for 256 of those,
    /// and tables, one of them for all weights.
    #[test]
    fn a_weight_takes_half_a_byte_and_its_scales() {
        let tape = Tape::new(Gpu::H200);
        let b = builder(&tape);
        let weight = Nf4::new(&b, [4096, 4096], DType::Bf16);
        let held: u64 = b.contents().iter().map(|x| x.numel() * x.dtype().width()).sum();
        assert_eq!(held, 8_388_608 + 262_144 + 4096 + 64 + 1024 + 4 + 1024);
        drop((weight, b));
    }

    #[test]
    fn forward_and_backward_make_the_weight_in_full_for_a_moment() {
        let tape = Tape::new(Gpu::H200);
        let b = builder(&tape);
        let weight = Nf4::new(&b, [512, 256], DType::Bf16);
        let x = tape.parameter([2048, 256], DType::F32, "x");
        let before = tape.mark();
        let out = weight.forward(&tape, &x, None);
        let after = tape.mark();
        tape.backward(&tape.mean(&tape.mean(&out, 1), 0));
        drop((out, x, weight, b));
        let log = tape.finish();
        let allocations = |from: usize, to: usize| {
            let born = log.events[from..to].iter().filter(|e| e.is_alloc());
            born.map(|e| &log.allocations[e.storage() as usize])
                .filter(|b| b.name != "cuBLAS workspace")
        };
        let sizes: Vec<u64> = allocations(before, after).map(|b| b.bytes).collect();
        let input = 2048 * 256 * 2;
        assert_eq!(
            sizes,
            [input, 2048 * 4, 2048 * 4, 512 * 256 * 2, 2048 * 512 * 2, 2048 * 512 * 4]
        );
        let full = allocations(after, log.events.len()).filter(|b| b.name == "4-bit weight in full");
        assert_eq!(full.count(), 1);
    }

    /// peft makes norms and embeddings fp32, so queries are fp32 where no autocast casts them.
    #[test]
    fn fp32_queries_of_a_quantised_model_are_cast_for_flash_attention() {
        let tape = Tape::new(Gpu::H200);
        let [full, half] = [DType::F32, DType::Bf16].map(|dtype| tape.empty([4], dtype, "query"));
        assert!(tape.flash_dtype(&full).is_none());
        let b = builder(&tape);
        let weight = Nf4::new(&b, [512, 256], DType::Bf16);
        assert_eq!(tape.flash_dtype(&full), Some(DType::Bf16));
        assert_eq!(tape.flash_dtype(&half), None);
        tape.autocast(Some(DType::F16), || {
            assert_eq!(tape.flash_dtype(&full), Some(DType::F16));
        });
        drop((weight, full, half, b));
    }

    #[test]
    fn few_rows_are_multiplied_directly() {
        let square = [4096, 4096];
        assert!(fuses((8, 9), 4, square));
        assert!(!fuses((8, 9), 5, square));
        assert!(fuses((9, 0), 64, [33_792, 4096]));
        assert!(!fuses((9, 0), 2048, square));
        assert!(!fuses((9, 0), 4, [4096, 100]));
    }
}
