//! Heads.

use super::config::{BertConfig, HeadModule};
use crate::model::config::Activation;
use crate::model::parts::text::Head;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Kind, Module, Tape, Tensor};

/// A linear layer, an activation and a norm before the output projection.
struct Transform {
    module: Module,
    dense: Linear,
    norm: LayerNorm,
    activation: Activation,
}

/// A head.
pub(super) struct BertHead {
    module: HeadModule,
    transform: Option<Transform>,
    decoder: Linear,
    /// A bias beside that of the output projection, which a head of its own weight does not use.
    _bias: Option<Tensor>,
}

impl Transform {
    fn new(b: &Builder, c: &BertConfig, norm_name: &'static str, activation: Activation) -> Self {
        Self {
            module: b.module(),
            dense: Linear::new(b, "dense", c.hidden, c.embedding, true),
            norm: LayerNorm::new(b, norm_name, c.embedding),
            activation,
        }
    }

    /// The linear layer, then what `between` makes, then the norm.
    fn around<R>(b: &Builder, c: &BertConfig, between: impl FnOnce() -> R) -> (Self, R) {
        let width = c.output_embedding;
        let dense = Linear::new(b, "dense", c.hidden, width, true);
        let made = between();
        let transform = Self {
            module: b.module(),
            dense,
            norm: LayerNorm::new(b, "LayerNorm", width),
            activation: c.activation,
        };
        (transform, made)
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || self.forward(t, x))
    }

    /// Runs it for a caller that has entered the module, of which it is a part.
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = self.dense.call(t, x);
        h = nn::activate(t, self.activation, h);
        self.norm.call(t, &h)
    }
}

impl BertHead {
    /// Makes the head; it shares the token embedding's weight `table`, if there is one. A head that is made first holds
    /// a weight of its own until [`Self::tie`].
    pub fn new(b: &Builder, c: &BertConfig, table: Option<Tensor>) -> Self {
        let (t, module) = (b.tape(), c.form.head);
        if module == HeadModule::Generator {
            return Self::generator(b, c, table);
        }
        if module == HeadModule::Widened {
            return t.scope(module.path(), || {
                let decoder = || Linear::head(b, "decoder", c.output_embedding, c.vocab, true);
                let (transform, decoder) = Transform::around(b, c, decoder);
                Self {
                    module,
                    transform: Some(transform),
                    decoder,
                    _bias: None,
                }
            });
        }
        t.scope(module.path(), || {
            let transform = match module {
                HeadModule::Predictions => {
                    Some(t.scope("transform", || Transform::new(b, c, "LayerNorm", c.activation)))
                }
                HeadModule::LmHead => Some(Transform::new(b, c, "layer_norm", Activation::Gelu)),
                HeadModule::Projection | HeadModule::Generator | HeadModule::Widened => None,
            };
            let ties = c.tie_word_embeddings;
            let decoder = match table {
                Some(table) => Linear::tied(b, "decoder", &table),
                None if ties => {
                    let weight = t.as_kind(Kind::Weight, || t.empty([c.vocab, c.embedding], b.dtype(), "weight"));
                    Linear::sharing("decoder", &weight)
                }
                None => Linear::head(b, "decoder", c.embedding, c.vocab, true),
            };
            let own = ties.then(|| t.empty([c.vocab], b.dtype(), "bias"));
            let bias = b.weight("bias", [c.vocab]);
            drop(own);
            let decoder = if ties { decoder.sharing_bias(&bias) } else { decoder };
            Self {
                module,
                transform,
                decoder,
                _bias: Some(bias),
            }
        })
    }

    /// ELECTRA's, whose output projection is a module of the model itself.
    fn generator(b: &Builder, c: &BertConfig, table: Option<Tensor>) -> Self {
        let transform = b.tape().scope("generator_predictions", || {
            let norm = LayerNorm::new(b, "LayerNorm", c.embedding);
            Transform {
                module: b.module(),
                dense: Linear::new(b, "dense", c.hidden, c.embedding, true),
                norm,
                activation: Activation::Gelu,
            }
        });
        let name = "generator_lm_head";
        let decoder = match table {
            Some(table) => Linear::tied(b, name, &table).with_bias(b, name, c.vocab),
            None => Linear::head(b, name, c.embedding, c.vocab, true),
        };
        Self {
            module: HeadModule::Generator,
            transform: Some(transform),
            decoder,
            _bias: None,
        }
    }

    /// Shares the token embedding's weight `table`, and frees its own.
    pub fn tie(&mut self, table: &Tensor) {
        self.decoder.share_weight(table);
    }
}

impl HeadModule {
    /// Path of the module.
    fn path(self) -> &'static str {
        match self {
            Self::Predictions | Self::Widened => "cls.predictions",
            Self::LmHead | Self::Projection => "lm_head",
            Self::Generator => "generator_predictions",
        }
    }
}

impl Head for BertHead {
    fn logits(&self, t: &Tape, h: &Tensor) -> Tensor {
        if self.module == HeadModule::Generator {
            let narrow = t.scope(self.module.path(), || match &self.transform {
                Some(transform) => transform.forward(t, h),
                None => h.clone(),
            });
            return self.decoder.call(t, &narrow);
        }
        t.scope(self.module.path(), || {
            let transformed = self.transform.as_ref().map(|transform| match self.module {
                HeadModule::Predictions => transform.call(t, h),
                _ => transform.forward(t, h),
            });
            self.decoder.call(t, transformed.as_ref().unwrap_or(h))
        })
    }
}
