//! A layer of Gemma 4's language models (`transformers/models/gemma4/modeling_gemma4.py`).

use std::cell::RefCell;
use std::rc::Rc;

use super::config::{ChosenExperts, Gemma4TextConfig};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, AttentionCall, Builder, ExpertSizes, Experts, KvCache, Linear, PowerRmsNorm};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// Keys and values of the last full and the last sliding layer that makes its own (`shared_kv_states`).
pub(in crate::model::families) type SharedStates = Rc<RefCell<[Option<(Tensor, Tensor)>; 2]>>;

/// State that all layers of one kind share in one forward.
pub(in crate::model::families) struct LayerContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub cos: Tensor,
    pub sin: Tensor,
    pub cache: Option<KvCache>,
    pub shared: SharedStates,
    /// Passed to every layer, so a checkpointed layer keeps it.
    pub _position_ids: Tensor,
}

/// `Gemma4TextDecoderLayer`.
pub(super) struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: PowerRmsNorm,
    post_attention_layernorm: PowerRmsNorm,
    pre_feedforward_layernorm: PowerRmsNorm,
    post_feedforward_layernorm: PowerRmsNorm,
    layer_scalar: Tensor,
    per_layer: Option<PerLayer>,
    moe: Option<Moe>,
}

/// Experts beside the MLP, whose sum with it is normalised.
struct Moe {
    router: Router,
    experts: Experts,
    post_feedforward_layernorm_1: PowerRmsNorm,
    post_feedforward_layernorm_2: PowerRmsNorm,
    pre_feedforward_layernorm_2: PowerRmsNorm,
}

/// `Gemma4TextRouter`.
struct Router {
    module: Module,
    norm: PowerRmsNorm,
    proj: Linear,
    scale: Tensor,
    per_expert_scale: Tensor,
    chosen: u64,
}

/// What a router returns.
struct Routes {
    _probabilities: Tensor,
    weights: Tensor,
    experts: Tensor,
}

/// Contribution of the input that each layer has of its own.
struct PerLayer {
    activation: Activation,
    per_layer_input_gate: Linear,
    per_layer_projection: Linear,
    post_per_layer_input_norm: PowerRmsNorm,
}

struct Mlp {
    module: Module,
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

struct SelfAttention {
    module: Module,
    q_proj: Linear,
    q_norm: PowerRmsNorm,
    /// `None` in layers that take keys and values from another.
    keys_values: Option<KeysValues>,
    o_proj: Linear,
    head_dim: u64,
    dropout: f64,
    /// 0 for full layers, 1 for sliding ones.
    kind: usize,
    /// True for the last layer of its kind that makes keys and values.
    stores: bool,
}

struct KeysValues {
    k_norm: PowerRmsNorm,
    v_norm: PowerRmsNorm,
    k_proj: Linear,
    /// `None` if keys are taken for values.
    v_proj: Option<Linear>,
}

impl Layer {
    pub fn new(b: &Builder, c: &Gemma4TextConfig, place: usize) -> Self {
        let t = b.tape();
        let norm = |name| PowerRmsNorm::new(b, name, c.hidden);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c, place)),
            mlp: t.scope("mlp", || Mlp::new(b, c, place)),
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
            pre_feedforward_layernorm: norm("pre_feedforward_layernorm"),
            post_feedforward_layernorm: norm("post_feedforward_layernorm"),
            layer_scalar: b.buffer("layer_scalar", [1], b.dtype()),
            per_layer: c.per_layer.map(|inputs| PerLayer {
                activation: c.activation,
                per_layer_input_gate: Linear::new(b, "per_layer_input_gate", c.hidden, inputs.width, false),
                per_layer_projection: Linear::new(b, "per_layer_projection", inputs.width, c.hidden, false),
                post_per_layer_input_norm: norm("post_per_layer_input_norm"),
            }),
            moe: c.experts.map(|experts| Moe::new(b, c, experts)),
        }
    }

    /// Hidden states [batch, seq, hidden] and the layer's own input [batch, seq, width] → hidden states.
    pub fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor, own_input: Option<&Tensor>) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared, h);
        h = out;
        h = self.post_attention_layernorm.call(t, &h);
        h = t.add(&residual, &h);
        let mut residual = h.clone();
        h = self.pre_feedforward_layernorm.call(t, &h);
        h = self.mlp.call(t, &h);
        let held;
        (h, held) = match &self.moe {
            Some(moe) => moe.forward(t, &residual, h),
            None => (h, None),
        };
        h = self.post_feedforward_layernorm.call(t, &h);
        h = t.add(&residual, &h);
        if let (Some(modules), Some(own_input)) = (&self.per_layer, own_input) {
            residual = h.clone();
            h = modules.forward(t, h, own_input);
            h = t.add(&residual, &h);
        }
        h = t.mul_(h, &self.layer_scalar);
        drop((held, residual));
        h
    }
}

impl Moe {
    fn new(b: &Builder, c: &Gemma4TextConfig, experts: ChosenExperts) -> Self {
        let norm = |name| PowerRmsNorm::new(b, name, c.hidden);
        let sizes = ExpertSizes {
            experts: experts.count,
            hidden: c.hidden,
            intermediate: experts.intermediate,
        };
        Self {
            router: b.tape().scope("router", || Router::new(b, c.hidden, experts)),
            experts: Experts::new(b, "experts", sizes, c.activation),
            post_feedforward_layernorm_1: norm("post_feedforward_layernorm_1"),
            post_feedforward_layernorm_2: norm("post_feedforward_layernorm_2"),
            pre_feedforward_layernorm_2: norm("pre_feedforward_layernorm_2"),
        }
    }

    /// Hidden states before the MLP and behind it, [batch, seq, hidden] → their sum with what the experts make of the
    /// first, and what the layer's forward holds until it returns.
    fn forward(&self, t: &Tape, before: &Tensor, behind: Tensor) -> (Tensor, Option<[Tensor; 5]>) {
        let first = self.post_feedforward_layernorm_1.call(t, &behind);
        let flat = t.reshape(before, [before.size(0) * before.size(1), before.last()]);
        let routes = self.router.call(t, &flat);
        let mut second = self.pre_feedforward_layernorm_2.call(t, &flat);
        second = self.experts.call(t, &second, &routes.experts, &routes.weights);
        second = t.reshape(&second, *before.shape());
        second = self.post_feedforward_layernorm_2.call(t, &second);
        let sum = t.add(&first, &second);
        drop(behind);
        let Routes {
            _probabilities,
            weights,
            experts,
        } = routes;
        (sum, Some([first, second, _probabilities, weights, experts]))
    }
}

impl Router {
    fn new(b: &Builder, hidden: u64, experts: ChosenExperts) -> Self {
        Self {
            module: b.module(),
            norm: PowerRmsNorm::plain("norm"),
            proj: Linear::new(b, "proj", hidden, experts.count, false),
            scale: b.weight("scale", [hidden]),
            per_expert_scale: b.weight("per_expert_scale", [experts.count]),
            chosen: experts.chosen,
        }
    }

    /// Tokens [n, hidden] → the experts of each [n, chosen] and their weights.
    fn call(&self, t: &Tape, x: &Tensor) -> Routes {
        self.module.call(t, || {
            let mut h = self.norm.call(t, x);
            h = {
                let scaled = t.mul(&h, &self.scale);
                t.scale(&scaled)
            };
            let scores = self.proj.call(t, &h);
            let probabilities = t.softmax(&scores, Some(DType::F32));
            let [mut weights, experts] = t.topk(&probabilities, self.chosen);
            weights = {
                let sum = t.sum_last(&weights);
                t.div_(weights, &sum)
            };
            weights = {
                let scales = t.index_broadcast(&self.per_expert_scale, std::slice::from_ref(&experts));
                t.mul(&weights, &scales)
            };
            drop((scores, h));
            Routes {
                _probabilities: probabilities,
                weights,
                experts,
            }
        })
    }
}

impl PerLayer {
    fn forward(&self, t: &Tape, x: Tensor, own_input: &Tensor) -> Tensor {
        let mut h = self.per_layer_input_gate.call(t, &x);
        drop(x);
        h = nn::activate(t, self.activation, h);
        h = t.mul(&h, own_input);
        h = self.per_layer_projection.call(t, &h);
        self.post_per_layer_input_norm.call(t, &h)
    }
}

impl Mlp {
    fn new(b: &Builder, c: &Gemma4TextConfig, place: usize) -> Self {
        let doubled = c.double_wide && place >= c.own_layers();
        let width = c.intermediate * if doubled { 2 } else { 1 };
        Self {
            module: b.module(),
            gate_proj: Linear::adapted(b, "gate_proj", c.hidden, width, false),
            up_proj: Linear::adapted(b, "up_proj", c.hidden, width, false),
            down_proj: Linear::adapted(b, "down_proj", width, c.hidden, false),
            activation: c.activation,
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let product = {
                let gate = self.gate_proj.call(t, x);
                let gate = nn::activate(t, self.activation, gate);
                let up = self.up_proj.call(t, x);
                t.mul(&gate, &up)
            };
            self.down_proj.call(t, &product)
        })
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &Gemma4TextConfig, place: usize) -> Self {
        let own = c.own_layers();
        let slides = c.slides[place];
        let kind = usize::from(slides);
        let heads = c.kinds[kind];
        let (q, kv) = (c.heads * heads.width, heads.kv_heads * heads.width);
        let linear = |name, input, output| Linear::adapted(b, name, input, output, c.attention_bias);
        let norm = |name| PowerRmsNorm::new(b, name, heads.width);
        Self {
            module: b.module(),
            q_proj: linear("q_proj", c.hidden, q),
            q_norm: norm("q_norm"),
            keys_values: (place < own).then(|| KeysValues {
                k_norm: norm("k_norm"),
                v_norm: PowerRmsNorm::plain("v_norm"),
                k_proj: linear("k_proj", c.hidden, kv),
                v_proj: (slides || !c.keys_are_values).then(|| linear("v_proj", c.hidden, kv)),
            }),
            o_proj: linear("o_proj", q, c.hidden),
            head_dim: heads.width,
            dropout: c.attention_dropout,
            kind,
            stores: place < own && !c.slides[place + 1..own].contains(&slides),
        }
    }

    /// [batch, seq, heads × width] → [batch, seq, heads, width].
    fn heads(&self, t: &Tape, x: &Tensor) -> Tensor {
        t.view(x, [x.size(0), x.size(1), x.last() / self.head_dim, self.head_dim])
    }

    fn call(&self, t: &Tape, shared: &LayerContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let rotated = |x: &Tensor| {
                let (cos, sin) = (t.unsqueeze(&shared.cos, 2), t.unsqueeze(&shared.sin, 2));
                nn::apply_rotary(t, x, &cos, &sin)
            };
            let mut q = self.heads(t, &self.q_proj.call(t, &x));
            q = self.q_norm.call(t, &q);
            q = rotated(&q);
            q = t.transpose(&q, 1, 2);
            let (mut k, mut v);
            match &self.keys_values {
                None => {
                    let states = shared.shared.borrow()[self.kind].clone();
                    (k, v) = states.unwrap_or_else(|| unreachable!("a layer of the kind has stored its keys"));
                }
                Some(own) => {
                    k = self.heads(t, &own.k_proj.call(t, &x));
                    v = match &own.v_proj {
                        Some(v_proj) => self.heads(t, &v_proj.call(t, &x)),
                        None => k.clone(),
                    };
                    k = own.k_norm.call(t, &k);
                    k = rotated(&k);
                    k = t.transpose(&k, 1, 2);
                    v = own.v_norm.call(t, &v);
                    v = t.transpose(&v, 1, 2);
                    if let Some(cache) = &shared.cache {
                        (k, v) = cache.update(t, &k, &v);
                    }
                }
            }
            if self.stores {
                shared.shared.borrow_mut()[self.kind] = Some((k.clone(), v.clone()));
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
