//! Attention of patches within segments (frames or windows).

use std::rc::Rc;

use super::block::Positions;
use super::layout::{Grid, Layout};
use super::rotary::apply_vision_rotary;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::setup::Attention;
use crate::tape::{Cuts, Tape, Tensor};

/// Segments of patches that attend only to their own patches, and their bounds on the GPU.
pub struct Segments {
    cuts: Rc<Cuts>,
    /// `cu_seqlens`, kept by checkpointed blocks.
    _bounds: Tensor,
}

impl Segments {
    /// Makes segments of the given numbers of patches.
    pub fn new(lengths: Vec<u64>, bounds: Tensor) -> Self {
        Self {
            cuts: Rc::new(Cuts::new(lengths)),
            _bounds: bounds,
        }
    }

    /// Makes one segment of each frame of each image.
    pub fn of_frames(layout: &Layout, bounds: Tensor) -> Self {
        let frames = |g: &Grid| vec![g.rows * g.columns; g.frames as usize];
        Self::new(layout.images().iter().flat_map(frames).collect(), bounds)
    }

    /// Attends within segments; queries, keys and values are [1, heads, patches, head_dim] each.
    pub fn attend(&self, t: &Tape, attn: Attention, qkv: [&Tensor; 3]) -> Attended {
        let count = self.cuts.lengths().len() as u64;
        let lengths = || t.empty([count], DType::I32, "lengths of segments");
        let _lengths = (attn != Attention::FlashAttention2).then(lengths);
        let (out, parts) = match attn {
            Attention::FlashAttention2 => (flash(t, qkv, count), Vec::new()),
            Attention::Sdpa if qkv[0].dtype() == qkv[2].dtype() => {
                let each = move |t: &Tape, qkv: [&Tensor; 3]| attend(t, attn, qkv);
                let (out, parts) = t.attend_segments(qkv, &self.cuts, &each);
                (out, vec![parts])
            }
            Attention::Sdpa | Attention::Eager => one_by_one(t, attn, qkv, self.cuts.lengths()),
        };
        Attended { out, parts, _lengths }
    }
}

/// What attention within segments makes.
pub struct Attended {
    /// [1, patches, heads, head_dim].
    pub out: Tensor,
    /// Outputs of the segments, which live as long as the caller's list of them.
    pub parts: Vec<Tensor>,
    /// Lengths of the segments, a variable of the caller.
    pub _lengths: Option<Tensor>,
}

/// `VisionAttention`.
pub struct VisionAttention {
    qkv: Linear,
    proj: Linear,
    /// Norms of queries and keys, of each head (GLM-OCR).
    norms: Option<[RmsNorm; 2]>,
    heads: u64,
}

impl VisionAttention {
    /// Makes the projections of `width`, with biases.
    pub fn new(b: &Builder, width: u64, heads: u64) -> Self {
        Self::with_biases(b, width, heads, [true; 2])
    }

    /// The same with biases of the first or the last projection only.
    pub fn with_biases(b: &Builder, width: u64, heads: u64, [qkv, proj]: [bool; 2]) -> Self {
        Self {
            qkv: Linear::new(b, "qkv", width, 3 * width, qkv),
            proj: Linear::new(b, "proj", width, width, proj),
            norms: None,
            heads,
        }
    }

    /// The same with norms of queries and keys, and biases if `bias`.
    pub fn with_norms(b: &Builder, width: u64, heads: u64, bias: bool) -> Self {
        let projections = Self::with_biases(b, width, heads, [bias; 2]);
        let norm = |name| RmsNorm::new(b, name, width / heads);
        Self {
            norms: Some([norm("q_norm"), norm("k_norm")]),
            ..projections
        }
    }

    /// [patches, width] → [patches, width].
    pub fn forward(&self, t: &Tape, attn: Attention, x: Tensor, segments: &Segments, positions: &Positions) -> Tensor {
        let [patches, width] = [x.size(0), x.size(1)];
        let [mut q, mut k, mut v] = self.project(t, &x);
        if let Some([q_norm, k_norm]) = &self.norms {
            q = t.scope("q_norm", || q_norm.forward(t, &q));
            k = t.scope("k_norm", || k_norm.forward(t, &k));
        }
        (q, k) = apply_vision_rotary(t, &q, &k, &positions.cos, &positions.sin);
        [q, k, v] = [q, k, v].map(|x| t.unsqueeze(&t.transpose(&x, 0, 1), 0));
        let Attended {
            mut out,
            parts: _parts,
            _lengths,
        } = segments.attend(t, attn, [&q, &k, &v]);
        out = t.reshape(&out, [patches, width]);
        t.scope("proj", || self.proj.forward(t, &out))
    }

    /// Queries, keys and values, [patches, heads, head_dim] each.
    fn project(&self, t: &Tape, x: &Tensor) -> [Tensor; 3] {
        let [patches, width] = [x.size(0), x.size(1)];
        let qkv = t.scope("qkv", || self.qkv.forward(t, x));
        let split = t.reshape(&qkv, [patches, 3, self.heads, width / self.heads]);
        drop(qkv);
        let parts = t.unbind(&t.permute(&split, &[1, 0, 2, 3]));
        match <[Tensor; 3]>::try_from(parts) {
            Ok(parts) => parts,
            Err(_) => unreachable!("three parts"),
        }
    }
}

/// Attends within segments in one call of `flash_attn_varlen_func`.
fn flash(t: &Tape, qkv: [&Tensor; 3], segments: u64) -> Tensor {
    let [q, k, v] = qkv.map(|x| t.cast_low(x));
    let out = t.flash_attention_of_segments([&q, &k, &v], segments);
    t.transpose(&out, 1, 2)
}

/// Attends within segments, recording each operation by itself, because queries, keys and values are freed at different
/// times: in eager attention, or where autocast converts some of them.
fn one_by_one(t: &Tape, attn: Attention, qkv: [&Tensor; 3], lengths: &[u64]) -> (Tensor, Vec<Tensor>) {
    let [q, k, v] = qkv.map(|x| t.split(x, 2, lengths));
    let each = |i: usize| attend(t, attn, [&q[i], &k[i], &v[i]]);
    let outs: Vec<Tensor> = (0..lengths.len()).map(each).collect();
    let joined = t.cat(&outs.iter().collect::<Vec<_>>(), 1);
    (joined, outs)
}

/// Attends within one segment; the attention weights, if any, are freed at once.
fn attend(t: &Tape, attn: Attention, [q, k, v]: [&Tensor; 3]) -> Tensor {
    let call = AttentionCall {
        q,
        k,
        v,
        mask: None,
        dropout: 0.0,
        softmax: Some(DType::F32),
    };
    nn::attention(t, attn, &call).0
}
