//! Attention of packed patches within their images.

use crate::dtype::DType;
use crate::model::parts::qwen_vl::{Attended, Positions, SegmentCall, Segments, apply_vision_rotary, attend_within};
use crate::nn::{self, AttentionCall, Builder, Linear};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// Attention whose projections of keys and values come before those of queries.
pub struct PackedAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    out_proj: Linear,
    heads: u64,
    dropout: f64,
}

impl PackedAttention {
    /// Makes the projections of `width`.
    pub fn new(b: &Builder, width: u64, heads: u64, dropout: f64) -> Self {
        let linear = |name| Linear::new(b, name, width, width, true);
        let (k_proj, v_proj) = (linear("k_proj"), linear("v_proj"));
        Self {
            module: b.module(),
            q_proj: linear("q_proj"),
            k_proj,
            v_proj,
            out_proj: linear("out_proj"),
            heads,
            dropout,
        }
    }

    /// [patches, width] → the same shape, with queries and keys rotated by `positions`, and the weights of eager attention,
    /// which the caller's variable holds.
    pub fn call_rotated(
        &self,
        t: &Tape,
        attn: Attention,
        x: Tensor,
        segments: &Segments,
        positions: &Positions,
    ) -> (Tensor, Vec<Tensor>) {
        self.module.call(t, move || {
            let [patches, width] = [x.size(0), x.size(1)];
            let [mut q, mut k, mut v] = self.project(t, &x, |x| t.view(x, [patches, self.heads, width / self.heads]));
            (q, k) = match attn {
                Attention::FlashAttention2 => flash_rotary(t, [&q, &k], positions),
                Attention::Sdpa | Attention::Eager => apply_vision_rotary(t, &q, &k, &positions.cos, &positions.sin),
            };
            if let Some(lengths) = segments.slices().filter(|_| attn != Attention::FlashAttention2) {
                let outs = self.of_slices(t, [&q, &k, &v], lengths);
                let joined = t.cat(&outs.iter().collect::<Vec<_>>(), 0);
                return (self.out_proj.call(t, &joined), Vec::new());
            }
            [q, k, v] = [q, k, v].map(|x| t.unsqueeze(&t.transpose(&x, 0, 1), 0));
            let Attended {
                mut out,
                _locals,
                weights,
            } = self.attend(t, attn, segments, ([&q, &k, &v], true));
            out = t.reshape(&out, [patches, width]);
            (self.out_proj.call(t, &out), weights)
        })
    }

    /// [1, patches, width] → the same.
    pub fn call(&self, t: &Tape, attn: Attention, x: Tensor, segments: &Segments) -> Tensor {
        self.module.call(t, move || {
            let [patches, width] = [x.size(1), x.size(2)];
            let heads = |x: &Tensor| t.transpose(&t.view(x, [1, patches, self.heads, width / self.heads]), 1, 2);
            let [q, k, v] = self.project(t, &x, heads);
            let Attended { mut out, _locals, .. } = self.attend(t, attn, segments, ([&q, &k, &v], false));
            out = t.reshape(&out, [1, patches, width]);
            self.out_proj.call(t, &out)
        })
    }

    /// Attends within each of the segments by PyTorch's attention: [patches, heads, width of one] → outputs of [patches of a
    /// segment, width].
    fn of_slices(&self, t: &Tape, qkv: [&Tensor; 3], lengths: &[u64]) -> Vec<Tensor> {
        let each = |&length: &u64| {
            let [q, k, v] = qkv.map(|x| t.transpose(&t.unsqueeze(&t.narrow(x, 0, length), 0), 1, 2));
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.dropout,
                softmax: None,
            };
            let (out, _) = nn::attention(t, Attention::Sdpa, &call);
            t.reshape(&out, [length, self.heads * out.last()])
        };
        lengths.iter().map(each).collect()
    }

    /// Queries, keys and values, each split into heads as it is made.
    fn project(&self, t: &Tape, x: &Tensor, split: impl Fn(&Tensor) -> Tensor) -> [Tensor; 3] {
        let q = split(&self.q_proj.call(t, x));
        let k = split(&self.k_proj.call(t, x));
        [q, k, split(&self.v_proj.call(t, x))]
    }

    fn attend(
        &self,
        t: &Tape,
        attn: Attention,
        segments: &Segments,
        (qkv, keeps_weights): ([&Tensor; 3], bool),
    ) -> Attended {
        let call = SegmentCall {
            qkv,
            dropout: self.dropout,
            keeps_weights,
        };
        attend_within(t, attn, segments, &call)
    }
}

/// `apply_rotary_pos_emb_flashatt` (`modeling_ovis2_5.py`; no other tower of these has its FlashAttention simulated): queries and
/// keys in fp32 are rotated by flash-attn's kernel, which takes half of the cosines and sines.
fn flash_rotary(t: &Tape, x: [&Tensor; 2], positions: &Positions) -> (Tensor, Tensor) {
    let waves =
        [&positions.cos, &positions.sin].map(|wave| t.no_grad(|| t.contiguous(&t.narrow(wave, 1, wave.last() / 2))));
    let [q, k] = x.map(|x| {
        let rotated = {
            let wide = t.to_dtype(x, DType::F32);
            t.flash_rotary(&wide, &waves)
        };
        t.to_dtype(&rotated, x.dtype())
    });
    (q, k)
}
