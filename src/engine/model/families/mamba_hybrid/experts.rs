//! Nemotron-H's experts, which have no gate and may work on a narrower stream (`NemotronHMoE`), and Jamba's.

use super::config::MambaHybridConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::decoder::ExpertsConfig;
use crate::model::decoder::router::Router;
use crate::nn::{self, Builder, ExpertSizes, Experts, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `NemotronHMoE`.
pub struct LatentMoe {
    module: Module,
    experts: Experts,
    gate: Router,
    shared_experts: SharedExperts,
    /// Projections of tokens to what experts get, and back.
    latent: Option<[Linear; 2]>,
}

/// `NemotronHMLP` of its own width.
struct SharedExperts {
    module: Module,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

impl LatentMoe {
    pub fn new(b: &Builder, c: &MambaHybridConfig, e: &ExpertsConfig) -> Self {
        let (t, text) = (b.tape(), &c.text);
        let sizes = ExpertSizes {
            hidden: c.latent.unwrap_or(text.hidden),
            ..e.sizes
        };
        let experts = Experts::plain(b, "experts", sizes, text.activation);
        let gate = t.scope("gate", || Router::new(b, e));
        let shared_experts = t.scope("shared_experts", || SharedExperts {
            module: b.module(),
            up_proj: Linear::adapted(b, "up_proj", text.hidden, c.shared, text.mlp_bias),
            down_proj: Linear::adapted(b, "down_proj", c.shared, text.hidden, text.mlp_bias),
            activation: text.activation,
        });
        let latent = c.latent.map(|latent| {
            [
                ("fc1_latent_proj", text.hidden, latent),
                ("fc2_latent_proj", latent, text.hidden),
            ]
            .map(|(name, input, output)| Linear::new(b, name, input, output, text.mlp_bias))
        });
        Self {
            module: b.module(),
            experts,
            gate,
            shared_experts,
            latent,
        }
    }

    /// [batch, seq, hidden] → the same.
    pub fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let shape = *x.shape();
            let [_logits, weights, indices] = self.gate.call(t, &x);
            let mut h = t.view(&x, [x.numel() / x.last(), x.last()]);
            if let Some([to, _]) = &self.latent {
                h = to.call(t, &h);
            }
            h = self.experts.call(t, &h, &indices, &weights);
            if let Some([_, back]) = &self.latent {
                h = back.call(t, &h);
            }
            h = t.view(&h, shape);
            let of_shared = self.shared_experts.call(t, &x);
            t.add(&h, &of_shared)
        })
    }
}

impl SharedExperts {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let activated = nn::activate(t, self.activation, self.up_proj.call(t, x));
            self.down_proj.call(t, &activated)
        })
    }
}

/// `JambaSparseMoeBlock`.
pub struct JambaMoe {
    module: Module,
    router: Linear,
    experts: Experts,
    chosen: u64,
}

impl JambaMoe {
    pub fn new(b: &Builder, activation: Activation, e: &ExpertsConfig) -> Self {
        Self {
            module: b.module(),
            router: Linear::new(b, "router", e.sizes.hidden, e.sizes.experts, false),
            experts: Experts::new(b, "experts", e.sizes, activation),
            chosen: e.chosen(),
        }
    }

    /// [batch, seq, hidden] → the same.
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let rows = t.view(x, [x.numel() / x.last(), x.last()]);
            let _logits = self.router.call(t, &rows);
            let [weights, indices] = {
                let probs = t.softmax(&_logits, Some(DType::F32));
                let [values, indices] = t.topk(&probs, self.chosen);
                [t.to_dtype(&values, rows.dtype()), indices]
            };
            let out = self.experts.call(t, &rows, &indices, &weights);
            t.reshape(&out, *x.shape())
        })
    }
}
