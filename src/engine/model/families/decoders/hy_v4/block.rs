//! HY-4's block (`transformers/models/hy_v4/modeling_hy_v4.py`).

use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::layer::FeedForward;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::sparse::SparseMlp;
use crate::model::decoder::sparse_latent::SparseAttention;
use crate::model::decoder::streams::Connection;
use crate::nn::{Builder, Experts, RmsNorm};
use crate::tape::{Tape, Tensor};

/// `HYV4DecoderLayer`.
pub(crate) struct Layer {
    self_attn: SparseAttention,
    mlp: Box<dyn FeedForward>,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    attn_hc: Connection,
    ffn_hc: Connection,
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let t = b.tape();
        let Some(streams) = c.own.streams() else {
            unreachable!("the family has streams")
        };
        let experts = c.experts.as_ref().filter(|experts| experts.sparse[index]);
        Self {
            self_attn: t.scope("self_attn", || SparseAttention::new(b, c, index)),
            mlp: t.scope("mlp", || match experts {
                Some(e) => {
                    let experts = || Experts::limited(b, "experts", e.sizes);
                    Box::new(SparseMlp::around(b, (c.activation, false), e, &experts)) as Box<dyn FeedForward>
                }
                None => Box::new(Mlp::new(b, c)),
            }),
            input_layernorm: RmsNorm::new(b, "input_layernorm", c.hidden),
            post_attention_layernorm: RmsNorm::new(b, "post_attention_layernorm", c.hidden),
            attn_hc: t.scope("attn_hc", || Connection::new(b, c, streams)),
            ffn_hc: t.scope("ffn_hc", || Connection::new(b, c, streams)),
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        self.forward_choosing(t, shared, x, None).0
    }

    fn forward_choosing(
        &self,
        t: &Tape,
        shared: &BlockContext,
        x: Tensor,
        before: Option<&Tensor>,
    ) -> (Tensor, Option<Tensor>) {
        let mut residual = x.clone();
        let [mut after, mut h] = self.attn_hc.call(t, &x);
        drop(x);
        h = self.input_layernorm.call(t, &h);
        let (out, _weights, choice) = self.self_attn.call(t, shared, h, before);
        h = Connection::added(t, &after, &out, &residual);
        drop(out);
        residual = h.clone();
        [after, h] = self.ffn_hc.call(t, &residual);
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, h);
        (Connection::added(t, &after, &h, &residual), choice)
    }
}
