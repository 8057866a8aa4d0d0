//! The head: a linear layer, an activation and a norm before the output projection.

use super::block::norm;
use super::config::ModernBertDecoderConfig;
use crate::model::config::Activation;
use crate::model::parts::text::Head;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `ModernBertDecoderPredictionHead` in the module `lm_head`, and the output projection `decoder`.
pub(super) struct PredictionHead {
    module: Module,
    dense: Linear,
    norm: LayerNorm,
    activation: Activation,
    decoder: Linear,
}

impl PredictionHead {
    /// Makes it; the output projection shares `table`, if there is one.
    pub fn new(b: &Builder, c: &ModernBertDecoderConfig, table: Option<&Tensor>) -> Self {
        let (module, dense, norm) = b.tape().scope("lm_head", || {
            let dense = Linear::new(b, "dense", c.hidden, c.hidden, c.biases.head);
            (b.module(), dense, norm(b, c, "norm"))
        });
        let name = "decoder";
        let decoder = match table {
            Some(table) => {
                let tied = Linear::tied(b, name, table);
                if c.biases.output {
                    tied.with_bias(b, name, c.vocab)
                } else {
                    tied
                }
            }
            None => Linear::head(b, name, c.hidden, c.vocab, c.biases.output),
        };
        Self {
            module,
            dense,
            norm,
            activation: c.head_activation,
            decoder,
        }
    }
}

impl Head for PredictionHead {
    fn logits(&self, t: &Tape, h: &Tensor) -> Tensor {
        let transformed = self.module.call(t, || {
            let activated = nn::activate(t, self.activation, self.dense.call(t, h));
            self.norm.call(t, &activated)
        });
        self.decoder.call(t, &transformed)
    }
}
