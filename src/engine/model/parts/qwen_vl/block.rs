//! Patch embedding and blocks of the vision towers.

use std::cell::Cell;
use std::rc::Rc;

use super::attention::{Segments, VisionAttention};
use super::patches::QwenPatches;
use crate::model::forward::Run;
use crate::nn::{Builder, LayerNorm, Numbered, RmsNorm};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// A module from one tensor to one tensor.
pub trait Map {
    /// Runs the module.
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor;
}

impl Map for LayerNorm {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        Self::call(self, t, x)
    }
}

impl Map for RmsNorm {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        Self::call(self, t, x)
    }
}

/// `PatchEmbed`: a convolution whose kernel is one patch.
pub struct PatchEmbed {
    module: Module,
    weight: Tensor,
    bias: Option<Tensor>,
    kernel: [u64; 4],
}

impl PatchEmbed {
    /// Makes a weight [width, channels, frames, patch, patch] and, if `bias`, a bias.
    pub fn new(b: &Builder, p: &QwenPatches, width: u64, bias: bool) -> Self {
        Self::named(b, "patch_embed.proj", p, width, bias)
    }

    /// Makes the same as the module `name`.
    pub fn named(b: &Builder, name: &'static str, p: &QwenPatches, width: u64, bias: bool) -> Self {
        let kernel = [p.channels, p.temporal_patch, p.patch, p.patch];
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [width, kernel[0], kernel[1], kernel[2], kernel[3]]),
            bias: bias.then(|| b.weight("bias", [width])),
            kernel,
        })
    }

    /// [patches, elements of a patch] → [patches, width].
    pub fn call(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [c, f, h, w] = self.kernel;
            let patches = t.view(pixels, [pixels.size(0), c, f, h, w]);
            let patches = t.to_dtype(&patches, t.type_of(&self.weight));
            let out = t.conv_patches(&patches, &self.weight, self.bias.as_ref());
            t.view(&out, [pixels.size(0), self.weight.size(0)])
        })
    }
}

/// `Qwen2VLVisionBlock` and its variants.
pub struct VisionBlock<N, M> {
    /// Norm before attention.
    pub norm1: N,
    /// Norm before the MLP.
    pub norm2: N,
    /// Attention.
    pub attn: VisionAttention,
    /// The MLP.
    pub mlp: M,
}

/// Cosines and sines of the patches' positions.
pub struct Positions {
    /// [patches, head_dim].
    pub cos: Tensor,
    /// [patches, head_dim].
    pub sin: Tensor,
}

impl Positions {
    /// As a wrapped block gets them: cast, where the wrapper casts what it is given in another type.
    fn given(self: &Rc<Self>, t: &Tape) -> Rc<Self> {
        match t.argument_type() {
            Some(dtype) if dtype != self.cos.dtype() => Rc::new(Self {
                cos: t.to_dtype(&self.cos, dtype),
                sin: t.to_dtype(&self.sin, dtype),
            }),
            _ => self.clone(),
        }
    }
}

impl<N: Map, M: Map> VisionBlock<N, M> {
    fn forward(&self, t: &Tape, attn: Attention, segments: &Segments, positions: &Positions, x: &Tensor) -> Tensor {
        let h = {
            let normed = self.norm1.call(t, x);
            let out = self.attn.call(t, attn, normed, segments, positions);
            t.add(x, &out)
        };
        let out = {
            let normed = self.norm2.call(t, &h);
            self.mlp.call(t, &normed)
        };
        t.add(&h, &out)
    }
}

/// The blocks of a tower.
pub struct VisionBlocks<N, M>(Vec<Numbered<VisionBlock<N, M>>>);

impl<N: Map + 'static, M: Map + 'static> VisionBlocks<N, M> {
    /// Makes `layers` blocks.
    pub fn new(b: &Builder, layers: u64, make: impl Fn() -> VisionBlock<N, M>) -> Self {
        Self::named(b, "blocks", layers, make)
    }

    /// Makes `layers` blocks as the modules `name.0`, `name.1`, ….
    pub fn named(b: &Builder, name: &'static str, layers: u64, make: impl Fn() -> VisionBlock<N, M>) -> Self {
        let block = |i| Numbered::new(b, name, i, || Rc::new(make()));
        Self((0..layers as usize).map(block).collect())
    }

    /// [patches, width] → [patches, width]. `segments` returns the segments of each block; `after` is called with each
    /// block's index and output, and allocates tensors of its own for the blocks `seen`.
    pub fn forward(
        &self,
        t: &Tape,
        run: &Run,
        h: Tensor,
        positions: &Rc<Positions>,
        segments: impl Fn(usize) -> Rc<Segments>,
        (seen, mut after): (&[u64], impl FnMut(&Tape, usize, &Tensor)),
    ) -> Tensor {
        let first = segments(0);
        // Segments are one of two, and each block in `seen` is a kind of its own.
        let kind = |i: usize| match seen.iter().position(|&seen| seen == i as u64) {
            Some(at) => 2 + at as u64,
            None => u64::from(Rc::ptr_eq(&segments(i), &first)),
        };
        let kinds: Vec<u64> = (0..self.0.len()).map(kind).collect();
        let mut h = Some(h);
        t.stack(&kinds, &mut |i| {
            let (block, positions, segments) = (self.0[i].clone(), positions.clone(), segments(i));
            let attn = run.attn;
            // A recomputation gets them as they were: then `FSDPState._pre_forward` casts nothing.
            let given = Cell::new(Some(positions.given(t)));
            let forward = move |t: &Tape, x: Tensor| {
                let given = given.take();
                block.forward(t, attn, &segments, given.as_ref().unwrap_or(&positions), &x)
            };
            let Some(x) = h.take() else { return };
            let out = run.block(t, &self.0[i], x, forward);
            after(t, i, &out);
            h = Some(out);
        });
        h.expect("blocks hand on what they are given")
    }
}
