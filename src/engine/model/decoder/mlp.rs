//! MLP of decoders like Llama's.

use super::config::DecoderConfig;
use super::forms::MlpKind;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear, RmsNorm, Xielu};
use crate::tape::{Module, Tape, Tensor};

/// `LlamaMLP` and its variants.
pub struct Mlp {
    module: Module,
    up: Up,
    down_proj: Linear,
    activation: Activation,
    /// The activation, if it has parameters (Apertus).
    xielu: Option<Xielu>,
    /// Norm of what enters the projection back (BitNet).
    sub_norm: Option<RmsNorm>,
    /// True if Liger replaces it.
    liger: bool,
}

/// Projections into an MLP.
enum Up {
    /// One, and another that gates it.
    Gated { gate_proj: Linear, up_proj: Linear },
    /// Both in one, the gate first (`Phi3MLP`, `GlmMLP`).
    Fused(Linear),
    /// One (`ArceeMLP`).
    Plain(Linear),
}

impl Mlp {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (hidden, intermediate, bias) = (c.hidden, c.intermediate, c.mlp_bias);
        let up = match c.family.block().mlp {
            MlpKind::Gated => {
                let gated = Self::of(b, [hidden, intermediate], bias, c.activation);
                let norm = || RmsNorm::new(b, "ffn_sub_norm", intermediate);
                return Self {
                    sub_norm: c.family.block().sub_norms.then(norm),
                    ..gated
                };
            }
            MlpKind::Fused => Up::Fused(Linear::new(b, "gate_up_proj", hidden, 2 * intermediate, bias)),
            MlpKind::Plain(names) => return Self::plain(b, c, names),
        };
        Self {
            module: b.module(),
            up,
            down_proj: Linear::rows(b, "down_proj", intermediate, hidden, bias),
            activation: c.activation,
            xielu: None,
            sub_norm: None,
            liger: b.has_liger_mlp(),
        }
    }

    /// Makes an MLP without a gate. By default LoRA adapts only projections with the names of Llama's.
    fn plain(b: &Builder, c: &DecoderConfig, [up, down]: [&'static str; 2]) -> Self {
        let (hidden, intermediate, bias) = (c.hidden, c.intermediate, c.mlp_bias);
        let (up_proj, down_proj) = match up {
            "up_proj" => (
                Linear::columns(b, up, hidden, intermediate, bias),
                Linear::rows(b, down, intermediate, hidden, bias),
            ),
            _ => (
                Linear::new(b, up, hidden, intermediate, bias),
                Linear::new(b, down, intermediate, hidden, bias),
            ),
        };
        Self {
            module: b.module(),
            up: Up::Plain(up_proj),
            down_proj,
            activation: c.activation,
            xielu: (c.activation == Activation::Xielu).then(|| Xielu::new(b, "act_fn")),
            sub_norm: None,
            liger: false,
        }
    }

    /// Makes a gated MLP of these widths.
    pub fn of(b: &Builder, [hidden, intermediate]: [u64; 2], bias: bool, activation: Activation) -> Self {
        Self {
            module: b.module(),
            up: Up::Gated {
                gate_proj: Linear::columns(b, "gate_proj", hidden, intermediate, bias),
                up_proj: Linear::columns(b, "up_proj", hidden, intermediate, bias),
            },
            down_proj: Linear::rows(b, "down_proj", intermediate, hidden, bias),
            activation,
            xielu: None,
            sub_norm: None,
            liger: b.has_liger_mlp(),
        }
    }

    /// Makes a gated MLP from one width through another to `output`, outside the language model: LoRA does not adapt its
    /// projections by default.
    pub fn of_tower(
        b: &Builder,
        [hidden, intermediate]: [u64; 2],
        output: u64,
        bias: bool,
        activation: Activation,
    ) -> Self {
        Self {
            module: b.module(),
            up: Up::Gated {
                gate_proj: Linear::new(b, "gate_proj", hidden, intermediate, bias),
                up_proj: Linear::new(b, "up_proj", hidden, intermediate, bias),
            },
            down_proj: Linear::new(b, "down_proj", intermediate, output, bias),
            activation,
            xielu: None,
            sub_norm: None,
            liger: b.has_liger_mlp(),
        }
    }

    pub fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let activate = |x: Tensor| match &self.xielu {
                Some(xielu) => xielu.call(t, &x),
                None => t.watched("act_fn", || nn::activate(t, self.activation, x)),
            };
            // `gate` is a view of a fused projection that lives until the forward returns.
            let mut _gate = None;
            let mut product = match &self.up {
                Up::Gated { gate_proj, up_proj } if self.liger => {
                    let gate = gate_proj.call(t, &x);
                    t.liger_gated(&gate, &up_proj.call(t, &x))
                }
                Up::Gated { gate_proj, up_proj } => {
                    let gate = activate(gate_proj.call(t, &x));
                    let up = up_proj.call(t, &x);
                    t.mul(&gate, &up)
                }
                Up::Fused(proj) => {
                    let fused = proj.call(t, &x);
                    let half = fused.last() / 2;
                    let parts = t.split(&fused, 2, &[half; 2]);
                    drop(fused);
                    let product = match self.liger {
                        true => t.liger_gated(&parts[0], &parts[1]),
                        false => {
                            let activated = activate(parts[0].clone());
                            t.mul(&parts[1], &activated)
                        }
                    };
                    _gate = Some(parts);
                    product
                }
                Up::Plain(proj) => activate(proj.call(t, &x)),
            };
            if let Some(norm) = &self.sub_norm {
                product = norm.call(t, &product);
            }
            self.down_proj.call(t, &product)
        })
    }
}
