//! A.X-K2's block (`transformers/models/axk2/modeling_axk2.py`).

use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::layer::FeedForward;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::sparse::SparseMlp;
use crate::model::decoder::sparse_latent::SparseAttention;
use crate::nn::{Activation, Builder, Linear, RmsNorm, activate};
use crate::tape::{Module, Tape, Tensor};

/// `AXK2DecoderLayer`.
pub(crate) struct Layer {
    self_attn: SparseAttention,
    mlp: Box<dyn FeedForward>,
    input_layernorm: GatedNorm,
    post_attention_layernorm: SecondNorm,
}

/// The norm before the MLP, which has a gate where there are experts.
enum SecondNorm {
    Plain(RmsNorm),
    Gated(Box<GatedNorm>),
}

/// `AXK2GatedRMSNorm`, with its `AXK2GateMLP`.
struct GatedNorm {
    module: Module,
    norm: RmsNorm,
    mlp: Module,
    fc1: Linear,
    fc2: Linear,
}

impl GatedNorm {
    fn new(b: &Builder, name: &'static str, [hidden, rank]: [u64; 2]) -> Self {
        let t = b.tape();
        t.scope(name, || {
            let norm = RmsNorm::new(b, "norm", hidden);
            let map = |name, input, output| Linear::new(b, name, input, output, false);
            let (mlp, fc1, fc2) = t.scope("mlp", || {
                (b.module(), map("fc1", hidden, rank), map("fc2", rank, hidden))
            });
            Self {
                module: b.module(),
                norm,
                mlp,
                fc1,
                fc2,
            }
        })
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let y = self.norm.call(t, x);
            let activated = {
                let wide = {
                    let gate = self.mlp.call(t, || {
                        let mut h = self.fc1.call(t, &y);
                        h = activate(t, Activation::Silu, h);
                        self.fc2.call(t, &h)
                    });
                    t.to_dtype(&gate, DType::F32)
                };
                t.sigmoid(&wide)
            };
            let wide = t.mul(&y, &activated);
            drop(activated);
            t.to_dtype(&wide, y.dtype())
        })
    }
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let t = b.tape();
        let experts = c.experts.as_ref().filter(|experts| experts.sparse[index]);
        let sizes = [c.hidden, c.own.gate_rank().unwrap_or_default()];
        Self {
            self_attn: t.scope("self_attn", || SparseAttention::new(b, c, index)),
            mlp: t.scope("mlp", || match experts {
                Some(e) => Box::new(SparseMlp::new(b, (c.activation, false), e)) as Box<dyn FeedForward>,
                None => Box::new(Mlp::new(b, c)),
            }),
            input_layernorm: GatedNorm::new(b, "input_layernorm", sizes),
            post_attention_layernorm: match experts {
                Some(_) => SecondNorm::Gated(Box::new(GatedNorm::new(b, "post_attention_layernorm", sizes))),
                None => SecondNorm::Plain(RmsNorm::new(b, "post_attention_layernorm", c.hidden)),
            },
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let mut h = self.input_layernorm.call(t, &x);
        let (out, _weights, _) = self.self_attn.call(t, shared, h, None);
        h = t.add(&x, &out);
        drop((x, out));
        let residual = h.clone();
        h = match &self.post_attention_layernorm {
            SecondNorm::Plain(norm) => norm.call(t, &h),
            SecondNorm::Gated(norm) => norm.call(t, &h),
        };
        h = self.mlp.call(t, h);
        t.add(&residual, &h)
    }
}
