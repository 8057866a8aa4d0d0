//! ProphetNet as a decoder (`transformers/models/prophetnet`).

mod attention;
mod block;
mod inputs;
mod stack;

use crate::dtype::DType;
use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;
use crate::tape::{Tape, Tensor};

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("prophetnet", &["ProphetNetForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// ProphetNet's decoder: beside the text itself, it predicts the next tokens in streams of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct ProphetNetConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Entries of the position embedding.
    pub positions: u64,
    /// Token that pads, after which positions begin.
    pub padding: u64,
    /// Streams that predict.
    pub streams: u64,
    /// Kinds of distances.
    pub buckets: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Dropout inside the MLP.
    pub activation_dropout: f64,
    /// True if blocks have attention to an encoder, which a decoder alone never runs.
    pub has_cross_attention: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

/// `_compute_loss` of the logits of all streams, [batch, streams, seq, vocab].
fn streams_loss(t: &Tape, logits: &Tensor, labels: &Tensor) -> Tensor {
    let [batch, streams, seq, vocab] = [logits.size(0), logits.size(1), logits.size(2), logits.size(3)];
    let targets = t.empty([streams, batch, seq], labels.dtype(), "targets");
    let flat = {
        let transposed = t.contiguous(&t.transpose(logits, 0, 1));
        t.view(&transposed, [streams * batch * seq, vocab])
    };
    let log_probs = t.log_softmax(&flat, Some(DType::F32));
    t.nll_loss(&log_probs, &t.view(&targets, [streams * batch * seq]))
}

impl TextFamily for ProphetNetConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 1024, limits::WIDTH)?;
        let heads = s.size("num_decoder_attention_heads", 16, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_decoder_attention_heads", heads))?;
        let vocab = s.size("vocab_size", 30_522, limits::VOCAB)?;
        s.padding(vocab)?;
        s.only("eps", "0: smoothed labels are not simulated", |v| {
            v.as_f64() == Some(0.0)
        })?;
        let positions = s.size("max_position_embeddings", 512, limits::POSITIONS)?;
        let padding = s.optional_count("pad_token_id", limits::VOCAB)?.unwrap_or(0);
        if padding + 3 > positions {
            let allowed = "a token before the last `max_position_embeddings`, after which positions begin";
            return Err(s.wrong("pad_token_id", &padding.into(), allowed));
        }
        Ok(Self {
            vocab,
            hidden,
            intermediate: s.size("decoder_ffn_dim", 4096, limits::WIDTH * 4)?,
            layers: s.size("num_decoder_layers", 12, limits::LAYERS)?,
            heads,
            positions,
            padding,
            streams: s.size_or("ngram", 2, limits::COUNT)?,
            buckets: s.size_or("num_buckets", 32, limits::COUNT)?,
            activation: s.activation("activation_function", Activation::Gelu)?,
            dropout: s.probability("dropout", 0.1)?,
            attention_dropout: s.probability("attention_dropout", 0.1)?,
            activation_dropout: s.probability("activation_dropout", 0.1)?,
            has_cross_attention: s.flag("add_cross_attention", true)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let form = HeadForm::plain(self.tie_word_embeddings);
        let lm = TextLm::new(b, "prophetnet.decoder", form, || stack::Decoder::new(b, self));
        Box::new(lm.with_loss(streams_loss))
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.positions - self.padding - 2)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.heads, self.hidden)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::OtherNames,
            liger: Liger::Unknown,
            no_flash: Some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
