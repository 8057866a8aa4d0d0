//! Attention of a block, and that of GPTBigCode.

use super::config::{AttentionForm, Dropouts, GptConfig};
use super::pairs::PairsAttention;
use super::window::TableAttention;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, KvCache, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// State that all blocks of one forward share.
pub(super) struct BlockContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub cache: Option<KvCache>,
    /// [1, seq].
    pub position_ids: Tensor,
}

/// Attention of a block.
pub(super) trait Attend {
    /// Output [batch, seq, hidden], and the weights, which the block holds.
    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>);

    /// Runs `_init_weights`, at the end of the constructor of the decoder.
    fn initialise(&self, _: &Tape) {}
}

/// Makes the attention of the block of this index.
pub(super) fn attention(b: &Builder, c: &GptConfig, index: usize) -> Box<dyn Attend> {
    match &c.attention {
        AttentionForm::Fused { multi_query } => Box::new(FusedAttention::new(b, c, *multi_query)),
        AttentionForm::Tables { local } => Box::new(TableAttention::new(b, c, local[index])),
        AttentionForm::Pairs { rotated, fused } => Box::new(PairsAttention::new(b, c, *rotated, *fused)),
    }
}

/// `GPTBigCodeAttention`.
struct FusedAttention {
    module: Module,
    c_attn: Linear,
    c_proj: Linear,
    multi_query: bool,
    head_dim: u64,
    dropouts: Dropouts,
}

impl FusedAttention {
    fn new(b: &Builder, c: &GptConfig, multi_query: bool) -> Self {
        let kv = if multi_query { c.head_dim() } else { c.hidden };
        Self {
            module: b.module(),
            c_attn: Linear::new(b, "c_attn", c.hidden, c.hidden + 2 * kv, true),
            c_proj: Linear::new(b, "c_proj", c.hidden, c.hidden, true),
            multi_query,
            head_dim: c.head_dim(),
            dropouts: c.dropouts,
        }
    }

    /// Queries, keys and values, [batch, heads, seq, width] each.
    fn projected(&self, t: &Tape, x: &Tensor) -> [Tensor; 3] {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        let width = self.head_dim;
        let qkv = self.c_attn.call(t, x);
        if self.multi_query {
            let parts = t.split(&t.unsqueeze(&qkv, 1), 3, &[hidden, width, width]);
            let q = t.view(&parts[0], [batch, seq, hidden / width, width]);
            return [t.transpose(&q, 1, 2), parts[1].clone(), parts[2].clone()];
        }
        let heads = t.transpose(&t.view(&qkv, [batch, seq, hidden / width, 3 * width]), 1, 2);
        let parts = t.split(&heads, 3, &[width; 3]);
        [0, 1, 2].map(|i| parts[i].clone())
    }
}

impl Attend for FusedAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let [q, mut k, mut v] = self.projected(t, x);
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropouts.attention,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, hidden]);
            out = self.c_proj.call(t, &out);
            out = t.dropout(&out, self.dropouts.residual);
            (out, weights)
        })
    }
}
