//! Aria's projector: queries that attend to the tower's features (`AriaProjector`).

use super::config::AriaConfig;
use crate::nn::{self, Activation, Builder, LayerNorm, Linear, MultiheadAttention};
use crate::tape::{Module, Tape, Tensor};

/// `AriaProjector`.
pub(super) struct Projector {
    /// [most queries, width].
    query: Tensor,
    cross_attn: CrossAttention,
    layer_norm: LayerNorm,
    feed_forward: ProjectorMlp,
}

impl Projector {
    pub fn new(b: &Builder, c: &AriaConfig) -> Self {
        let t = b.tape();
        let (width, text) = (c.vision.shape.hidden, c.text.hidden);
        Self {
            query: b.weight("query", [c.most_queries(), width]),
            cross_attn: t.scope("cross_attn", || CrossAttention::new(b, width, c.vision.shape.heads)),
            layer_norm: LayerNorm::new(b, "layer_norm", width),
            feed_forward: t.scope("feed_forward", || ProjectorMlp {
                module: b.module(),
                linear_in: Linear::new(b, "linear_in", width, text, false),
                linear_out: Linear::new(b, "linear_out", text, text, false),
            }),
        }
    }

    /// Features [images, patches, width] → [images, queries, text width].
    pub fn call(&self, t: &Tape, features: &Tensor, queries: u64) -> Tensor {
        let images = features.size(0);
        let queries = t.repeat(&t.unsqueeze(&t.narrow(&self.query, 0, queries), 0), images);
        let attended = self.cross_attn.call(t, features, &queries);
        let out = self.feed_forward.call(t, &self.layer_norm.call(t, &attended));
        drop((attended, queries));
        out
    }
}

/// `AriaCrossAttention`.
struct CrossAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    multihead_attn: MultiheadAttention,
    linear: Linear,
    layer_norm: LayerNorm,
    layer_norm_kv: LayerNorm,
}

impl CrossAttention {
    fn new(b: &Builder, width: u64, heads: u64) -> Self {
        let map = |name, bias| Linear::new(b, name, width, width, bias);
        Self {
            module: b.module(),
            q_proj: map("q_proj", false),
            k_proj: map("k_proj", false),
            v_proj: map("v_proj", false),
            multihead_attn: MultiheadAttention::new(b, "multihead_attn", width, heads),
            linear: map("linear", true),
            layer_norm: LayerNorm::new(b, "layer_norm", width),
            layer_norm_kv: LayerNorm::new(b, "layer_norm_kv", width),
        }
    }

    /// Queries [images, queries, width] attend to features [images, patches, width].
    fn call(&self, t: &Tape, features: &Tensor, queries: &Tensor) -> Tensor {
        self.module.call(t, || {
            let query = self.q_proj.call(t, &self.layer_norm.call(t, queries));
            let context = self.layer_norm_kv.call(t, features);
            let key = self.k_proj.call(t, &context);
            let value = self.v_proj.call(t, &context);
            let (attended, weights) = self.multihead_attn.call_on(t, [&query, &key, &value]);
            let out = self.linear.call(t, &attended);
            drop((attended, weights, query, key, value, context));
            out
        })
    }
}

/// `AriaProjectorMLP`.
struct ProjectorMlp {
    module: Module,
    linear_in: Linear,
    linear_out: Linear,
}

impl ProjectorMlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let h = nn::activate(t, Activation::GeluNew, self.linear_in.call(t, x));
            self.linear_out.call(t, &h)
        })
    }
}
