//! Attention on the portable backend: fused, or as matrix products and softmax, forward and with backward.

use vramscope_benchmark::{Kernel, Layout, Pass};
use vramscope_engine::attention::Algorithm;

use super::gpu::{EnqueuedKernel, Source};
use super::job::{Job, grid, numbers};
use super::steps::{PRODUCT, product_numbers, tiles};
use crate::backends::Refusal;
use crate::kernels::work::Extents;

impl Job<'_> {
    /// Prepares an attention.
    pub(super) fn attention(&mut self, kernel: &Kernel) -> Result<(), Refusal> {
        let e = Extents::of(kernel);
        if e.heads != e.kv_heads {
            return Err(Refusal::Unsupported(
                "through this interface keys and values need as many heads as queries".into(),
            ));
        }
        let scale = 1.0 / (e.width as f32).sqrt();
        let heads = e.batch * e.heads;
        match (kernel.algorithm, kernel.pass) {
            (Some(Algorithm::Flash), None | Some(Pass::Forward)) if e.width <= 128 && e.width.is_multiple_of(4) => {
                let real = [scale, 0.0, 0.0, if e.causal { 1.0 } else { 0.0 }];
                let groups = [e.length.div_ceil(64) as u32, heads as u32, 1];
                self.one(
                    (Source::Attention, "attention"),
                    [e.length, e.width, heads, 0],
                    real,
                    groups,
                )
            }
            (Some(Algorithm::Standard), None | Some(Pass::Forward)) if !e.causal => self.standard(e, scale, false),
            (Some(Algorithm::Standard), Some(Pass::ForwardBackward)) if !e.causal => self.standard(e, scale, true),
            _ => Err(Refusal::Unsupported("this attention is not written in WGSL".into())),
        }
    }

    /// Prepares scores, softmax and product; in training also the gradients of values, probabilities, scores, queries
    /// and keys.
    fn standard(&mut self, e: Extents, scale: f32, trains: bool) -> Result<(), Refusal> {
        let heads = e.batch * e.heads;
        let bytes = heads * e.length * e.length * self.precision.width();
        let (gpu, precision) = (self.gpu, self.precision);
        let pairs = || gpu.allocate(bytes);
        let (scores, shares) = (pairs()?, pairs()?);
        let spare = self.spare()?;
        let [query, key, value] = [0, 1, 2].map(|i| &self.inputs[i]);
        let product = |layout, [m, n, k]: [u64; 3], buffers: [&wgpu::Buffer; 3]| -> Result<EnqueuedKernel, Refusal> {
            let [left, right, result] = buffers;
            gpu.step(
                PRODUCT,
                precision,
                [left, right, result, &spare],
                numbers([m, n, k, heads], product_numbers(layout, 1.0)),
                tiles([m, n], heads),
            )
        };
        let rows = |name, buffers: [&wgpu::Buffer; 4]| {
            let extents = numbers([heads * e.length, e.length, 0, 0], [scale, 0.0, 0.0, 0.0]);
            gpu.step(
                (Source::Rows, name),
                precision,
                buffers,
                extents,
                grid(heads * e.length),
            )
        };
        let against = [e.length, e.length, e.width];
        let weighted = [e.length, e.width, e.length];
        let mut steps = vec![
            product(Layout::Nt, against, [query, key, &scores])?,
            rows("softmax", [&scores, &shares, &spare, &self.outputs[0]])?,
            product(Layout::Nn, weighted, [&shares, value, &self.outputs[0]])?,
        ];
        self.name = "product, softmax".into();
        let mut held = 2;
        if trains {
            let extents = numbers([heads * e.length, e.length, 0, 0], [0.0, scale, 0.0, 0.0]);
            let sums = (Source::Labels, "sums");
            // Sums of the scores must be computed before later steps reuse their memory.
            let buffers = [&scores, &spare, &self.outputs[0], &self.outputs[1]];
            steps.insert(2, gpu.step(sums, precision, buffers, extents, grid(heads * e.length))?);
            let (upstream, of_scores) = (&self.inputs[3], pairs()?);
            steps.extend([
                product(Layout::Tn, weighted, [&shares, upstream, &self.outputs[4]])?,
                product(Layout::Nt, against, [upstream, value, &scores])?,
                rows("softmax_backward", [&scores, &shares, &of_scores, &spare])?,
                product(Layout::Nn, weighted, [&of_scores, key, &self.outputs[2]])?,
                product(Layout::Tn, weighted, [&of_scores, query, &self.outputs[3]])?,
            ]);
            self.name += ", sums, softmax_backward";
            held = 3;
        }
        self.extra = held * bytes.next_multiple_of(512);
        self.steps.extend(steps);
        Ok(())
    }
}
