//! Attention of patches within segments (frames or windows).

use std::rc::Rc;

use super::block::Positions;
use super::layout::{Grid, Layout};
use super::rotary::{apply_vision_rotary, apply_vision_rotary_by_liger};
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::setup::Attention;
use crate::tape::{Cuts, Module, Tape, Tensor};

/// Segments of patches that attend only to their own patches, and their bounds on the GPU.
pub struct Segments {
    cuts: Rc<Cuts>,
    /// `cu_seqlens`, kept by checkpointed blocks.
    _bounds: Tensor,
    /// True if code cuts them out one by one, each with a gradient of the whole, where it does not take FlashAttention.
    is_sliced: bool,
}

impl Segments {
    /// Makes segments of the given numbers of patches.
    pub fn new(lengths: Vec<u64>, bounds: Tensor) -> Self {
        Self {
            cuts: Rc::new(Cuts::new(lengths)),
            _bounds: bounds,
            is_sliced: false,
        }
    }

    /// Marks the segments as cut out one by one (`queries[start:end]`), as Ovis2.5 does: each slice gets a gradient of the whole,
    /// where `split` makes one for all.
    pub fn sliced(self) -> Self {
        Self {
            is_sliced: true,
            ..self
        }
    }

    /// Lengths of the segments, if code cuts them out one by one.
    pub fn slices(&self) -> Option<&[u64]> {
        self.is_sliced.then(|| self.cuts.lengths())
    }

    /// Makes one segment of each frame of each image.
    pub fn of_frames(layout: &Layout, bounds: Tensor) -> Self {
        let frames = |g: &Grid| vec![g.rows * g.columns; g.frames as usize];
        Self::new(layout.images().iter().flat_map(frames).collect(), bounds)
    }
}

/// Projections of queries, keys and values.
enum Qkv {
    /// All three in one.
    Fused(Linear),
    /// One each.
    Separate(Box<[Linear; 3]>),
}

/// Names of Kimi-K2.5's projections.
const SEPARATE: [&str; 3] = ["q_proj", "k_proj", "v_proj"];

/// `VisionAttention`.
pub struct VisionAttention {
    module: Module,
    qkv: Qkv,
    proj: Linear,
    /// Norms of queries and keys, of each head (GLM-OCR).
    norms: Option<[RmsNorm; 2]>,
    /// True if Liger replaces the rotation.
    liger_rope: bool,
    heads: u64,
    /// Heads of keys and values, if query heads share them.
    shared_heads: Option<u64>,
}

impl VisionAttention {
    /// Makes the projections of `width`, with biases.
    pub fn new(b: &Builder, width: u64, heads: u64) -> Self {
        Self::with_biases(b, width, heads, [true; 2])
    }

    /// Makes the projections of `width`, with biases of `qkv` and of `proj` as given.
    pub fn with_biases(b: &Builder, width: u64, heads: u64, [qkv, proj]: [bool; 2]) -> Self {
        Self {
            module: b.module(),
            qkv: Qkv::Fused(Linear::new(b, "qkv", width, 3 * width, qkv)),
            proj: Linear::new(b, "proj", width, width, proj),
            norms: None,
            liger_rope: b.has_liger_rope(),
            heads,
            shared_heads: None,
        }
    }

    /// Makes the projections of `width`, the output's last, with one each for queries, keys and values (Qwen2.5-Omni).
    pub fn apart(b: &Builder, width: u64, heads: u64) -> Self {
        Self {
            module: b.module(),
            qkv: Qkv::Separate(Box::new(
                ["q", "k", "v"].map(|name| Linear::new(b, name, width, width, true)),
            )),
            proj: Linear::new(b, "proj", width, width, true),
            norms: None,
            liger_rope: b.has_liger_rope(),
            heads,
            shared_heads: None,
        }
    }

    /// Makes the projections of `width`, the output's first, with `shared` heads of keys and values.
    pub fn grouped(b: &Builder, width: u64, heads: u64, shared: u64) -> Self {
        let proj = Linear::new(b, "proj", width, width, true);
        let rows = width + 2 * shared * (width / heads);
        Self {
            module: b.module(),
            qkv: Qkv::Fused(Linear::new(b, "qkv", width, rows, true)),
            proj,
            norms: None,
            liger_rope: b.has_liger_rope(),
            heads,
            shared_heads: Some(shared),
        }
    }

    /// Makes the projections of `width`, the output's first, with one each for queries, keys and values (Kimi-K2.5).
    pub fn separate(b: &Builder, width: u64, heads: u64) -> Self {
        let proj = Linear::new(b, "proj", width, width, true);
        Self {
            module: b.module(),
            qkv: Qkv::Separate(Box::new(SEPARATE.map(|name| Linear::new(b, name, width, width, true)))),
            proj,
            norms: None,
            liger_rope: b.has_liger_rope(),
            heads,
            shared_heads: None,
        }
    }

    /// Makes the projections of `width`, with biases if `bias`, and norms of the queries and keys of each head.
    pub fn with_norms(b: &Builder, width: u64, heads: u64, bias: bool) -> Self {
        let projections = Self::with_biases(b, width, heads, [bias; 2]);
        let norm = |name| RmsNorm::new(b, name, width / heads);
        Self {
            norms: Some([norm("q_norm"), norm("k_norm")]),
            ..projections
        }
    }

    /// [patches, width] → [patches, width].
    pub fn call(&self, t: &Tape, attn: Attention, x: Tensor, segments: &Segments, positions: &Positions) -> Tensor {
        self.module.call(t, move || {
            let [patches, width] = [x.size(0), x.size(1)];
            let [mut q, mut k, mut v] = self.project(t, &x);
            if let Some([q_norm, k_norm]) = &self.norms {
                q = q_norm.call(t, &q);
                k = k_norm.call(t, &k);
            }
            let apply = match self.liger_rope {
                true => apply_vision_rotary_by_liger,
                false => apply_vision_rotary,
            };
            (q, k) = apply(t, &q, &k, &positions.cos, &positions.sin);
            [q, k, v] = [q, k, v].map(|x| t.unsqueeze(&t.transpose(&x, 0, 1), 0));
            let call = SegmentCall {
                qkv: [&q, &k, &v],
                dropout: 0.0,
                keeps_weights: false,
            };
            let Attended { mut out, _locals, .. } = attend_within(t, attn, segments, &call);
            out = t.reshape(&out, [patches, width]);
            self.proj.call(t, &out)
        })
    }

    /// Queries, keys and values, [patches, heads, head_dim] each.
    fn project(&self, t: &Tape, x: &Tensor) -> [Tensor; 3] {
        let [patches, width] = [x.size(0), x.size(1)];
        let fused = match &self.qkv {
            Qkv::Fused(fused) => fused,
            Qkv::Separate(each) => {
                return [0, 1, 2].map(|i| {
                    let made = each[i].call(t, x);
                    t.view(&made, [patches, self.heads, width / self.heads])
                });
            }
        };
        let qkv = fused.call(t, x);
        if let Some(shared) = self.shared_heads {
            let head = width / self.heads;
            let parts = t.split(&qkv, 1, &[width, shared * head, shared * head]);
            let heads = [self.heads, shared, shared];
            return [0, 1, 2].map(|i| t.view(&parts[i], [patches, heads[i], head]));
        }
        let split = t.reshape(&qkv, [patches, 3, self.heads, width / self.heads]);
        drop(qkv);
        let parts = t.unbind(&t.permute(&split, &[1, 0, 2, 3]));
        match <[Tensor; 3]>::try_from(parts) {
            Ok(parts) => parts,
            Err(_) => unreachable!("three parts"),
        }
    }
}

/// Arguments of attention within segments.
pub struct SegmentCall<'a> {
    /// Queries, keys and values, [1, heads, patches, width] each.
    pub qkv: [&'a Tensor; 3],
    /// Probability of dropout.
    pub dropout: f64,
    /// True if the weights of eager attention are returned too.
    pub keeps_weights: bool,
}

/// Result of attention within segments.
pub struct Attended {
    /// [1, patches, heads, width].
    pub out: Tensor,
    /// Locals of the module's forward, which live until it returns.
    pub _locals: (Option<Tensor>, Vec<Tensor>),
    /// Weights that the module's forward returns.
    pub weights: Vec<Tensor>,
}

/// Attends within segments.
pub fn attend_within(t: &Tape, attn: Attention, segments: &Segments, call: &SegmentCall<'_>) -> Attended {
    let count = segments.cuts.lengths().len() as u64;
    let lengths = || t.empty([count], DType::I32, "lengths of segments");
    let lengths = (attn != Attention::FlashAttention2).then(lengths);
    let [q, k, v] = call.qkv;
    // Operations are recorded one by one where query heads share keys, or where autocast converts inputs: those of each segment
    // are saved then, not the whole. Linear layers in 4 bits return the type of their input, which is fp32 after a norm.
    let is_converted = t
        .autocast_dtype()
        .is_some_and(|low| call.qkv.iter().any(|x| x.dtype() != low));
    let is_uniform = q.size(1) == k.size(1) && q.dtype() == v.dtype() && !is_converted;
    let (out, parts, weights) = match attn {
        Attention::FlashAttention2 => (flash(t, call.qkv, count), Vec::new(), Vec::new()),
        Attention::Sdpa if is_uniform => {
            let dropout = call.dropout;
            let each = move |t: &Tape, qkv: [&Tensor; 3]| attend(t, attn, qkv, dropout).0;
            let (out, parts) = t.attend_segments(call.qkv, &segments.cuts, &each);
            (out, vec![parts], Vec::new())
        }
        Attention::Sdpa | Attention::Eager => one_by_one(t, attn, call, segments.cuts.lengths()),
    };
    Attended {
        out,
        _locals: (lengths, parts),
        weights,
    }
}

/// Attends within segments in one call of `flash_attn_varlen_func`.
fn flash(t: &Tape, qkv: [&Tensor; 3], segments: u64) -> Tensor {
    let dtype = t.flash_dtype(qkv[0]);
    let [q, k, v] = qkv.map(|x| match dtype {
        Some(dtype) => t.to_dtype(x, dtype),
        None => x.clone(),
    });
    let out = t.flash_attention_of_segments([&q, &k, &v], segments);
    t.transpose(&out, 1, 2)
}

/// Attends within segments, recording each operation by itself, because queries, keys and values are freed at different
/// times: the whole, the outputs of all segments, and the weights that are returned.
fn one_by_one(
    t: &Tape,
    attn: Attention,
    call: &SegmentCall<'_>,
    lengths: &[u64],
) -> (Tensor, Vec<Tensor>, Vec<Tensor>) {
    let [q, k, v] = call.qkv.map(|x| t.split(x, 2, lengths));
    let (mut outs, mut kept) = (Vec::with_capacity(lengths.len()), Vec::new());
    for i in 0..lengths.len() {
        let (out, weights) = attend(t, attn, [&q[i], &k[i], &v[i]], call.dropout);
        outs.push(out);
        kept.extend(weights.filter(|_| call.keeps_weights));
    }
    let joined = t.cat(&outs.iter().collect::<Vec<_>>(), 1);
    (joined, outs, kept)
}

/// Attends within one segment; returns the weights, if any, beside the output.
fn attend(t: &Tape, attn: Attention, [q, k, v]: [&Tensor; 3], dropout: f64) -> (Tensor, Option<Tensor>) {
    let call = AttentionCall {
        q,
        k,
        v,
        mask: None,
        dropout,
        softmax: Some(DType::F32),
    };
    nn::attention(t, attn, &call)
}
