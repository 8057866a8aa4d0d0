//! Layers that scan a state, attend, or do both (`BambaDecoderLayer`, `GraniteMoeHybridDecoderLayer`, `NemotronHBlock`,
//! `FalconH1DecoderLayer`).

use super::config::{HybridKind, LayerKind, MambaHybridConfig, Scan};
use super::experts::{JambaMoe, LatentMoe};
use crate::model::config::Activation;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::layer::{Attend, SelfAttention};
use crate::model::decoder::mlp::Mlp;
use crate::model::families::decoders::granitemoe::{Moe, SharedMlp};
use crate::model::families::mamba::Mixer as Mixer1;
use crate::model::parts::mamba2::Mixer2;
use crate::model::parts::mixed_layers::{LayerContext, MixedLayer};
use crate::nn::{self, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// A layer: a mixer of positions and what follows it, or one of both alone (Nemotron-H).
pub struct Layer {
    kind: HybridKind,
    norm: RmsNorm,
    mamba: Option<Mixer>,
    self_attn: Option<SelfAttention>,
    second_norm: Option<RmsNorm>,
    feed_forward: FeedForward,
    layer: LayerKind,
}

/// A mixer with a state.
enum Mixer {
    First(Box<Mixer1>),
    Second(Box<Mixer2>),
}

impl Mixer {
    fn call(&self, t: &Tape, shared: &LayerContext, x: &Tensor) -> Tensor {
        let (padding, cache) = (shared.padding.as_ref(), shared.block.cache.as_ref());
        match self {
            Self::First(mixer) => mixer.call(t, padding, cache, x),
            Self::Second(mixer) => mixer.call(t, padding, cache, x),
        }
    }
}

/// The part of a layer that takes each position by itself.
enum FeedForward {
    None,
    Mlp(Box<Mlp>),
    /// Experts, if there are some, and the MLP that all tokens pass (Granite).
    Granite(Box<(Option<Moe>, SharedMlp)>),
    Falcon(Box<FalconMlp>),
    Experts(Box<LatentMoe>),
    Jamba(Box<JambaMoe>),
}

/// `FalconH1MLP`.
struct FalconMlp {
    module: Module,
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

impl Layer {
    pub fn new(b: &Builder, c: &MambaHybridConfig, index: usize) -> Self {
        let layer = c.layers[index];
        match c.kind {
            HybridKind::Bamba | HybridKind::Falcon => Self::with_mlp_first(b, c, layer),
            HybridKind::Granite => Self::of_granite(b, c, layer),
            HybridKind::Nemotron => Self::of_nemotron(b, c, layer),
            HybridKind::Jamba => Self::of_jamba(b, c, index),
        }
    }

    fn with_mlp_first(b: &Builder, c: &MambaHybridConfig, layer: LayerKind) -> Self {
        let t = b.tape();
        let feed_forward = t.scope("feed_forward", || match c.kind {
            HybridKind::Falcon => FeedForward::Falcon(Box::new(FalconMlp::new(b, &c.text))),
            _ => FeedForward::Mlp(Box::new(Mlp::new(b, &c.text))),
        });
        let norms = || ["input_layernorm", "pre_ff_layernorm"].map(|name| RmsNorm::new(b, name, c.text.hidden));
        let (norm, second_norm, mamba, self_attn);
        if c.kind == HybridKind::Falcon {
            (mamba, self_attn) = mixers(b, c, layer, ["mamba", "self_attn"]);
            [norm, second_norm] = norms();
        } else {
            [norm, second_norm] = norms();
            (mamba, self_attn) = mixers(b, c, layer, ["mamba", "self_attn"]);
        }
        Self {
            kind: c.kind,
            norm,
            mamba,
            self_attn,
            second_norm: Some(second_norm),
            feed_forward,
            layer,
        }
    }

    fn of_granite(b: &Builder, c: &MambaHybridConfig, layer: LayerKind) -> Self {
        let t = b.tape();
        let norms = ["input_layernorm", "post_attention_layernorm"];
        let [norm, second_norm] = norms.map(|name| RmsNorm::new(b, name, c.text.hidden));
        let experts = c.text.experts.as_ref();
        let moe = experts.map(|e| t.scope("block_sparse_moe", || Moe::new(b, e, c.text.activation)));
        let shared = t.scope("shared_mlp", || SharedMlp::new(b, &c.text, c.shared));
        let feed_forward = FeedForward::Granite(Box::new((moe, shared)));
        let (mamba, self_attn) = mixers(b, c, layer, ["mamba", "self_attn"]);
        Self {
            kind: c.kind,
            norm,
            mamba,
            self_attn,
            second_norm: Some(second_norm),
            feed_forward,
            layer,
        }
    }

    fn of_jamba(b: &Builder, c: &MambaHybridConfig, index: usize) -> Self {
        let (t, layer) = (b.tape(), c.layers[index]);
        let (mamba, self_attn) = mixers(b, c, layer, ["mamba", "self_attn"]);
        let feed_forward = t.scope("feed_forward", || match &c.text.experts {
            Some(experts) if c.sparse[index] => {
                FeedForward::Jamba(Box::new(JambaMoe::new(b, c.text.activation, experts)))
            }
            _ => FeedForward::Mlp(Box::new(Mlp::new(b, &c.text))),
        });
        let norms = ["input_layernorm", "pre_ff_layernorm"];
        let [norm, second_norm] = norms.map(|name| RmsNorm::new(b, name, c.text.hidden));
        Self {
            kind: c.kind,
            norm,
            mamba,
            self_attn,
            second_norm: Some(second_norm),
            feed_forward,
            layer,
        }
    }

    fn of_nemotron(b: &Builder, c: &MambaHybridConfig, layer: LayerKind) -> Self {
        let t = b.tape();
        let norm = RmsNorm::new(b, "norm", c.text.hidden);
        let (mamba, self_attn) = mixers(b, c, layer, ["mixer"; 2]);
        let feed_forward = match (layer, &c.text.experts) {
            (LayerKind::Mlp, _) => FeedForward::Mlp(Box::new(t.scope("mixer", || Mlp::new(b, &c.text)))),
            (LayerKind::Experts, Some(experts)) => {
                FeedForward::Experts(Box::new(t.scope("mixer", || LatentMoe::new(b, c, experts))))
            }
            _ => FeedForward::None,
        };
        Self {
            kind: c.kind,
            norm,
            mamba,
            self_attn,
            second_norm: None,
            feed_forward,
            layer,
        }
    }

    /// Makes the factors of the mixer's projection, which the model does once all its layers are made.
    pub fn with_multipliers(self, b: &Builder) -> Self {
        let t = b.tape();
        let with = |mamba: Mixer| match mamba {
            Mixer::First(mixer) => Mixer::First(mixer),
            Mixer::Second(mixer) => Mixer::Second(Box::new(t.scope("mamba", || mixer.with_multipliers(b)))),
        };
        Self {
            mamba: self.mamba.map(with),
            ..self
        }
    }

    /// Mixes positions, [batch, seq, hidden] → the same, and what the layer's variables hold until it returns.
    fn mix(&self, t: &Tape, shared: &LayerContext, h: &Tensor) -> (Tensor, Vec<Tensor>) {
        let scan = |mamba: &Mixer| mamba.call(t, shared, h);
        match (&self.mamba, &self.self_attn) {
            (Some(mamba), None) => (scan(mamba), Vec::new()),
            (None, Some(attention)) => {
                let (out, weights) = attention.call(t, &shared.block, h.clone());
                if self.kind == HybridKind::Bamba {
                    shared.returned.put(weights.clone());
                }
                (out, weights.into_iter().collect())
            }
            (Some(mamba), Some(attention)) => {
                let of_mamba = t.scale(&scan(mamba));
                let (mut of_attention, weights) = attention.call(t, &shared.block, t.scale(h));
                of_attention = t.scale(&of_attention);
                let sum = t.add(&of_mamba, &of_attention);
                (sum, [of_mamba, of_attention].into_iter().chain(weights).collect())
            }
            (None, None) => unreachable!("the layer mixes positions"),
        }
    }

    /// Adds what a part makes to the residual stream.
    fn added(&self, t: &Tape, residual: &Tensor, part: &Tensor) -> Tensor {
        match self.kind {
            HybridKind::Granite => t.add(residual, &t.scale(part)),
            _ => t.add(residual, part),
        }
    }
}

/// Makes the mixers of a layer, by the names of that with a state and of attention.
fn mixers(
    b: &Builder,
    c: &MambaHybridConfig,
    layer: LayerKind,
    [mamba, attention]: [&'static str; 2],
) -> (Option<Mixer>, Option<SelfAttention>) {
    let t = b.tape();
    let scans = matches!(layer, LayerKind::Mamba | LayerKind::Both);
    let attends = matches!(layer, LayerKind::Attention | LayerKind::Both);
    let attention = || {
        let made = t.scope(attention, || SelfAttention::new(b, &c.text, 0));
        match c.has_positions {
            true => made,
            false => made.without_positions(),
        }
    };
    let mamba = scans.then(|| {
        t.scope(mamba, || match &c.mamba {
            Scan::First(c) => Mixer::First(Box::new(Mixer1::new(b, c))),
            Scan::Second(c) => Mixer::Second(Box::new(Mixer2::new(b, c))),
        })
    });
    (mamba, attends.then(attention))
}

impl MixedLayer for Layer {
    const DOES_BOTH: bool = true;

    fn kind(&self) -> u64 {
        match self.layer {
            LayerKind::Mamba | LayerKind::Attention | LayerKind::Both => {
                2 * u64::from(matches!(self.feed_forward, FeedForward::Jamba(_)))
            }
            LayerKind::Mlp => 1,
            LayerKind::Experts => 2,
        }
    }

    fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.norm.call(t, &x);
        drop(x);
        let mut _held = Vec::new();
        if self.mamba.is_some() || self.self_attn.is_some() {
            (h, _held) = self.mix(t, shared, &h);
        } else {
            h = self.feed_forward.call(t, h).0;
        }
        h = self.added(t, &residual, &h);
        let Some(norm) = &self.second_norm else { return h };
        let residual = h.clone();
        h = norm.call(t, &h);
        let _routed;
        (h, _routed) = self.feed_forward.call(t, h);
        self.added(t, &residual, &h)
    }
}

impl FeedForward {
    /// [batch, seq, hidden] → the same, and what experts make where the layer's variable holds it until it returns.
    fn call(&self, t: &Tape, h: Tensor) -> (Tensor, Option<Tensor>) {
        let out = match self {
            Self::None => h,
            Self::Mlp(mlp) => mlp.call(t, h),
            Self::Granite(parts) => match &**parts {
                (None, shared) => shared.call(t, &h),
                (Some(moe), shared) => {
                    let routed = moe.call(t, &h);
                    return (t.add(&routed, &shared.call(t, &h)), Some(routed));
                }
            },
            Self::Falcon(mlp) => mlp.call(t, &h),
            Self::Experts(moe) => moe.call(t, h),
            Self::Jamba(moe) => moe.call(t, &h),
        };
        (out, None)
    }
}

impl FalconMlp {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let map = |name, input, output| Linear::adapted(b, name, input, output, c.mlp_bias);
        Self {
            module: b.module(),
            gate_proj: map("gate_proj", c.hidden, c.intermediate),
            up_proj: map("up_proj", c.hidden, c.intermediate),
            down_proj: map("down_proj", c.intermediate, c.hidden),
            activation: c.activation,
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let product = {
                let up = self.up_proj.call(t, x);
                let gate = {
                    let gate = t.scale(&self.gate_proj.call(t, x));
                    nn::activate(t, self.activation, gate)
                };
                t.mul(&up, &gate)
            };
            t.scale(&self.down_proj.call(t, &product))
        })
    }
}
