//! Single changes of a setup, such as another optimizer or half the micro-batch.

use serde::{Deserialize, Serialize};

use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Attention, Checkpointing, Freeze, Loss, Optimizer, Precision, ZeroGrad};
use vramscope_engine::{Model, Setup};

/// A new value for one setting of a setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Micro-batch.
    Batch(u64),
    /// Positions per sample.
    Seq(u64),
    /// Number format.
    Precision(Precision),
    /// Optimizer.
    Optim(Optimizer),
    /// Trained parts.
    Freeze(Freeze),
    /// Activation checkpointing.
    Ckpt(Checkpointing),
    /// Attention implementation.
    Attn(Attention),
    /// Micro-batches per optimizer step.
    Accum(u64),
    /// Gradient clipping.
    Clip(bool),
    /// Implementation of the loss.
    Loss(Loss),
    /// State of gradients after `zero_grad`.
    ZeroGrad(ZeroGrad),
    /// Autocast's weight cache.
    AutocastCache(bool),
    /// Exponential moving average of the weights.
    Ema(bool),
}

/// Changes that do not depend on the setup, in menu order. Optimizers that take the same memory are represented by one.
const CHOICES: [Change; 35] = [
    Change::Precision(Precision::Fp32),
    Change::Precision(Precision::Bf16),
    Change::Precision(Precision::AmpBf16),
    Change::Precision(Precision::AmpFp16),
    Change::Optim(Optimizer::Adamw),
    Change::Optim(Optimizer::AdamwFused),
    Change::Optim(Optimizer::AdamwLoop),
    Change::Optim(Optimizer::Adamw8bit),
    Change::Optim(Optimizer::PagedAdamw8bit),
    Change::Optim(Optimizer::PagedAdamw),
    Change::Optim(Optimizer::Adafactor),
    Change::Optim(Optimizer::Sgdm),
    Change::Optim(Optimizer::Sgd),
    Change::Freeze(Freeze::None),
    Change::Freeze(Freeze::Vision),
    Change::Freeze(Freeze::AllButConnector),
    Change::Freeze(Freeze::Lora),
    Change::Freeze(Freeze::Qlora),
    Change::Ckpt(Checkpointing::None),
    Change::Ckpt(Checkpointing::Full),
    Change::Ckpt(Checkpointing::Vision),
    Change::Ckpt(Checkpointing::Language),
    Change::Attn(Attention::Sdpa),
    Change::Attn(Attention::Eager),
    Change::Attn(Attention::FlashAttention2),
    Change::Clip(false),
    Change::Clip(true),
    Change::Loss(Loss::Full),
    Change::Loss(Loss::FusedLinear),
    Change::ZeroGrad(ZeroGrad::ToNone),
    Change::ZeroGrad(ZeroGrad::ToZero),
    Change::AutocastCache(true),
    Change::AutocastCache(false),
    Change::Ema(false),
    Change::Ema(true),
];

impl Change {
    /// Every change that applies to a model and alters the setup, in menu order. A change that turns out not to run
    /// reports its error when it is tried.
    pub fn all(model: &Model, setup: &Setup) -> Vec<Self> {
        let takes = model.takes();
        sizes(setup)
            .into_iter()
            .chain(CHOICES)
            .filter(|change| change.means_something(takes, setup) && change.apply(setup) != *setup)
            .collect()
    }

    /// A copy of the setup with this change.
    #[must_use]
    pub fn apply(self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        match self {
            Self::Batch(batch) => setup.batch = batch,
            Self::Seq(seq) => setup.seq = seq,
            Self::Precision(precision) => setup.precision = precision,
            Self::Optim(optim) => setup.optim = optim,
            Self::Freeze(freeze) => setup.freeze = freeze,
            Self::Ckpt(ckpt) => setup.ckpt = ckpt,
            Self::Attn(attn) => setup.attn = attn,
            Self::Accum(accum) => setup.accum = accum,
            Self::Clip(clip) => setup.clip = clip,
            Self::Loss(loss) => setup.loss = loss,
            Self::ZeroGrad(zero_grad) => setup.zero_grad = zero_grad,
            Self::AutocastCache(cache) => setup.autocast_cache = cache,
            Self::Ema(ema) => setup.ema = ema,
        }
        setup
    }

    /// Key of the setting in a case file.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Batch(_) => "batch",
            Self::Seq(_) => "seq",
            Self::Precision(_) => "precision",
            Self::Optim(_) => "optim",
            Self::Freeze(_) => "freeze",
            Self::Ckpt(_) => "ckpt",
            Self::Attn(_) => "attn",
            Self::Accum(_) => "accum",
            Self::Clip(_) => "clip",
            Self::Loss(_) => "loss",
            Self::ZeroGrad(_) => "zero_grad",
            Self::AutocastCache(_) => "autocast_cache",
            Self::Ema(_) => "ema",
        }
    }

    /// The new value as a case file writes it, without quotes.
    pub fn value(self) -> String {
        match self {
            Self::Batch(n) | Self::Seq(n) | Self::Accum(n) => n.to_string(),
            Self::Clip(on) | Self::AutocastCache(on) | Self::Ema(on) => on.to_string(),
            Self::Precision(choice) => word(choice),
            Self::Optim(choice) => word(choice),
            Self::Freeze(choice) => word(choice),
            Self::Ckpt(choice) => word(choice),
            Self::Attn(choice) => word(choice),
            Self::Loss(choice) => word(choice),
            Self::ZeroGrad(choice) => word(choice),
        }
    }

    fn means_something(self, takes: Takes, setup: &Setup) -> bool {
        let autocast = matches!(setup.precision, Precision::AmpBf16 | Precision::AmpFp16);
        match self {
            // With samples of different lengths, the list of lengths determines batch and sequence length.
            Self::Batch(_) => setup.lengths.is_empty(),
            Self::Seq(_) => takes.text && setup.lengths.is_empty(),
            Self::Freeze(Freeze::Vision | Freeze::AllButConnector) => takes.parts,
            Self::Freeze(Freeze::Lora | Freeze::Qlora) => takes.text,
            Self::Ckpt(Checkpointing::Vision | Checkpointing::Language) => takes.parts,
            Self::Loss(_) => takes.text,
            Self::AutocastCache(_) => autocast,
            _ => true,
        }
    }
}

/// Half and double of micro-batch and accumulation, and half of the sequence length, as long as they are at least one.
fn sizes(setup: &Setup) -> Vec<Change> {
    let half = |n: u64| (n > 1).then_some(n / 2);
    let double = |n: u64| n.checked_mul(2);
    let batch = [half(setup.batch), double(setup.batch)]
        .into_iter()
        .flatten()
        .map(Change::Batch);
    let seq = half(setup.seq).into_iter().map(Change::Seq);
    let accum = [half(setup.accum), double(setup.accum)]
        .into_iter()
        .flatten()
        .map(Change::Accum);
    batch.chain(seq).chain(accum).collect()
}

/// The name by which case files spell a choice.
pub(super) fn word(choice: impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(serde_json::Value::String(word)) => word,
        // Choices serialize as strings, so nothing else can occur.
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn all(name: &str, setup: &Setup) -> Vec<(&'static str, String)> {
        let model = Model::from_catalogue(name).unwrap();
        let changes = Change::all(&model, setup);
        changes.into_iter().map(|c| (c.key(), c.value())).collect()
    }

    /// Each change sets the setting that its key names.
    #[test]
    fn a_change_sets_the_entry_that_it_names() {
        let setup = Setup {
            batch: 4,
            accum: 4,
            precision: Precision::AmpBf16,
            ..Setup::default()
        };
        let model = Model::from_catalogue("llava-1.5-7b").unwrap();
        for change in Change::all(&model, &setup) {
            let mut expected = serde_json::to_value(&setup).unwrap();
            let value = change.value();
            expected[change.key()] = serde_json::from_str(&value).unwrap_or(Value::String(value));
            assert_eq!(serde_json::to_value(change.apply(&setup)).unwrap(), expected);
        }
    }

    #[test]
    fn what_the_setup_has_is_no_change() {
        let setup = Setup::default();
        let listed = all("llava-1.5-7b", &setup);
        assert!(listed.contains(&("ckpt", "full".into())) && !listed.contains(&("ckpt", "none".into())));
        assert!(listed.contains(&("batch", "2".into())) && !listed.iter().any(|c| *c == ("batch", "0".into())));
        assert!(
            !listed.iter().any(|(key, _)| *key == "autocast_cache"),
            "nothing is cast"
        );
    }

    #[test]
    fn a_text_model_has_no_tower_to_freeze_and_an_image_model_no_loss_to_fuse() {
        let gpt2 = all("gpt2", &Setup::default());
        assert!(
            !gpt2
                .iter()
                .any(|(_, value)| value == "vision" || value == "all-but-connector")
        );
        let vit = all("vit-large", &Setup::default());
        assert!(
            !vit.iter()
                .any(|(key, value)| *key == "loss" || *key == "seq" || value == "lora")
        );
    }

    #[test]
    fn every_choice_of_the_vocabulary_is_tried_once() {
        let words: Vec<_> = CHOICES.iter().map(|c| (c.key(), c.value())).collect();
        let mut once = words.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), words.len());
        assert!(words.iter().all(|(key, value)| {
            let one = json!({ *key: serde_json::from_str(value).unwrap_or(Value::from(value.as_str())) });
            serde_json::from_value::<Setup>(one).is_ok()
        }));
    }
}
