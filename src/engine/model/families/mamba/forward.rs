//! `MambaForCausalLM` (`transformers/models/mamba/modeling_mamba.py`).

use std::rc::Rc;

use super::config::{Kind, MambaConfig};
use super::mixer::Mixer;
use crate::dtype::DType;
use crate::model::decoder::head::head_for;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::mamba2::{Gating, Mamba2Config, Mamba2Sizes, Mixer2};
use crate::nn::{self, Builder, Embedding, Linear, Numbered, RmsNorm};
use crate::tape::{Component, Tape, Tensor};

/// `MambaForCausalLM`.
pub struct Mamba {
    embeddings: Embedding,
    layers: Vec<Numbered<Layer>>,
    norm_f: RmsNorm,
    lm_head: Linear,
    dtype: DType,
    /// True if layers get the padding mask only where something is padded.
    needs_padding: bool,
}

/// `MambaBlock`.
struct Layer {
    norm: RmsNorm,
    mixer: AnyMixer,
    residual_in_fp32: bool,
    dtype: DType,
}

enum AnyMixer {
    First(Box<Mixer>),
    Second(Box<Mixer2>),
}

impl Mamba {
    pub fn new(b: &Builder, c: &MambaConfig) -> Self {
        let t = b.tape();
        let (embeddings, layers, norm_f) = t.component("backbone", Component::LanguageModel, || {
            let embeddings = Embedding::new(b, "embeddings", c.vocab, c.hidden);
            let layer = |i: u64| Numbered::new(b, "layers", i as usize, || Rc::new(Layer::new(b, c)));
            let layers = (0..c.layers).map(layer).collect();
            (embeddings, layers, RmsNorm::new(b, "norm_f", c.hidden))
        });
        Self {
            lm_head: head_for(b, embeddings.weight(), c.tie_word_embeddings),
            embeddings,
            layers,
            norm_f,
            dtype: b.dtype(),
            needs_padding: matches!(c.kind, Kind::Mamba2(_)),
        }
    }

    /// Token ids [batch, seq] and their mask → [batch, seq, hidden].
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let embeds = self.embeddings.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let mask = match self.needs_padding {
            true => mask.and_then(|mask| nn::recurrent_mask(t, mask)),
            false => mask.cloned(),
        };
        let mut h = embeds.clone();
        // The first layer gets its input in the type of the embeddings, the others in that of the residual.
        let kinds: Vec<u64> = (0..self.layers.len()).map(|i| u64::from(i == 0)).collect();
        t.stack(&kinds, &mut |i| {
            let (layer, mask) = (self.layers[i].clone(), mask.clone());
            let forward = move |t: &Tape, x: Tensor| layer.forward(t, mask.as_ref(), &x);
            let input = h.clone();
            h = run.block(t, &self.layers[i], input, forward);
        });
        let out = self.norm_f.call(t, &h);
        drop((h, embeds));
        out
    }
}

impl Forward for Mamba {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(labels)) = (&batch.ids, &batch.labels) else {
            unreachable!("a text batch has ids and labels")
        };
        let h = t.component("backbone", Component::LanguageModel, || {
            self.hidden(t, run, ids, batch.padding())
        });
        t.component("", Component::Head, || {
            let logits = {
                let product = {
                    let narrow = t.to_dtype(&h, self.dtype);
                    self.lm_head.call(t, &narrow)
                };
                t.to_dtype(&product, DType::F32)
            };
            let loss = t.scope("loss", || nn::causal_lm_loss(t, &logits, labels));
            // The hidden states are a local of the model's forward, freed when it returns.
            drop(h);
            Output {
                loss,
                held: vec![logits],
            }
        })
    }
}

impl Layer {
    fn new(b: &Builder, c: &MambaConfig) -> Self {
        Self {
            norm: RmsNorm::new(b, "norm", c.hidden),
            mixer: b.tape().scope("mixer", || match &c.kind {
                Kind::Mamba2(sizes) => AnyMixer::Second(Box::new(Mixer2::new(b, &second(c, *sizes)))),
                Kind::Mamba | Kind::FalconMamba | Kind::Jamba => AnyMixer::First(Box::new(Mixer::new(b, c))),
            }),
            residual_in_fp32: c.residual_in_fp32,
            dtype: b.dtype(),
        }
    }

    fn forward(&self, t: &Tape, mask: Option<&Tensor>, x: &Tensor) -> Tensor {
        let normed = {
            let own = t.to_dtype(x, self.dtype);
            self.norm.call(t, &own)
        };
        let residual = match self.residual_in_fp32 {
            true => t.to_dtype(x, DType::F32),
            false => x.clone(),
        };
        let mixed = match &self.mixer {
            AnyMixer::First(mixer) => mixer.call(t, mask, None, &normed),
            AnyMixer::Second(mixer) => mixer.call(t, mask, None, &normed),
        };
        drop(normed);
        t.add(&residual, &mixed)
    }
}

/// The mixer of Mamba 2.
const fn second(c: &MambaConfig, sizes: Mamba2Sizes) -> Mamba2Config {
    Mamba2Config {
        hidden: c.hidden,
        sizes,
        conv: c.conv,
        in_bias: c.bias,
        out_bias: c.bias,
        gating: Gating::BeforeNorm,
        has_multipliers: false,
    }
}
