//! Adapters of languages (X-MOD).

use std::rc::Rc;

use super::config::{AdaptersConfig, BertConfig};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, Builder, LayerNorm, Linear, Numbered};
use crate::tape::{Tape, Tensor};

/// `lang_adapter`, and the modules that it runs.
pub(super) struct Adapters {
    config: AdaptersConfig,
    /// `adapter_layer_norm`.
    norm: Option<LayerNorm>,
    modules: Vec<Numbered<Adapter>>,
    activation: Activation,
    dropout: f64,
}

/// `XmodAdapter`.
struct Adapter {
    dense1: Linear,
    dense2: Linear,
}

impl Adapters {
    /// Makes an adapter for each language.
    pub fn new(b: &Builder, c: &BertConfig, config: AdaptersConfig) -> Self {
        let map = |name, input, output| Linear::new(b, name, input, output, true);
        let adapter = || Adapter {
            dense1: map("dense1", c.hidden, config.width),
            dense2: map("dense2", config.width, c.hidden),
        };
        let numbered = |i| Numbered::new(b, "adapter_modules", i, || Rc::new(adapter()));
        Self {
            config,
            norm: config.normed.then(|| LayerNorm::new(b, "adapter_layer_norm", c.hidden)),
            modules: (0..config.languages as usize).map(numbered).collect(),
            activation: c.activation,
            dropout: c.hidden_dropout,
        }
    }

    /// Runs each language's adapter on the samples of that language; `ids` are the languages, [batch], and `of_mlp` is the
    /// norm of the MLP.
    pub fn call(&self, t: &Tape, ids: &Tensor, of_mlp: Option<&LayerNorm>, x: Tensor) -> Tensor {
        let mut h = x.clone();
        let norm = self.norm.as_ref().or(of_mlp.filter(|_| self.config.reuses_norm));
        if let Some(norm) = norm {
            h = norm.call(t, &h);
        }
        let residual = if self.config.passes_normed { h.clone() } else { x };
        let mut out = t.empty_like(&h, h.dtype(), "zeros_like");
        // Variables of the loop.
        let (mut _mask, mut _rows, mut _adapted) = (None, None, None);
        for (number, adapter) in self.modules.iter().enumerate() {
            let samples = if number as u64 == self.config.of_samples {
                ids.numel()
            } else {
                0
            };
            let mask = t.compute(ids, DType::Bool, "lang_ids == number");
            _mask = Some(mask.clone());
            let rows = t.index_rows(&h, &mask, samples);
            _rows = Some(rows.clone());
            let adapted = adapter.enter(t, || {
                let mut inner = adapter.dense1.call(t, &rows);
                inner = nn::activate(t, self.activation, inner);
                adapter.dense2.call(t, &inner)
            });
            _adapted = Some(adapted.clone());
            t.can_put("XMOD", &out, &adapted);
            out = match samples {
                // Indexing drops the first dimension of a single sample, which is then broadcast.
                1 => t.index_put_one(out, &mask, &t.view(&adapted, [h.size(1), h.size(2)]), 1),
                _ => t.index_put_rows(out, &mask, &adapted),
            };
        }
        out = t.dropout(&out, self.dropout);
        t.add_(out, &residual)
    }
}
