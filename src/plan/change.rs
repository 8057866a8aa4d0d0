//! Single changes of a setup, such as another optimizer or half the micro-batch.

use super::optimizers;
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Alternatives, Change, Kind, Reference, Setting, TrainerKind};
use vramscope_engine::{Model, Setup};

/// Every change that applies to a model and alters the setup: sizes first, then choices in menu order. A change that
/// turns out not to run reports its error when it is tried.
pub fn changes(model: &Model, setup: &Setup) -> Vec<Change> {
    let takes = model.takes();
    let sizes = Setting::by_group().flat_map(|setting| sizes(setting, setup));
    sizes
        .chain(smaller_images(setup))
        .chain(choices(setup))
        .filter(|change| applies(change, takes, setup) && change.apply(setup) != *setup)
        .collect()
}

/// Half and double of a number, as its declaration allows, as long as it is at least one.
fn sizes(setting: Setting, setup: &Setup) -> impl Iterator<Item = Change> {
    let now = setting.of(setup).count().unwrap_or(0);
    let half = (now > 1).then_some(now / 2);
    let double = now.checked_mul(2).filter(|double| *double > 0);
    let values = match setting.declaration().alternatives {
        Alternatives::Half => [half, None],
        Alternatives::HalfAndDouble => [half, double],
        Alternatives::None | Alternatives::Each => [None, None],
    };
    let values = values.into_iter().flatten();
    values.filter_map(move |value| setting.count(value))
}

/// Images of half the height and half the width, where their sizes are listed.
fn smaller_images(setup: &Setup) -> Option<Change> {
    let halved = setup.image_sizes.iter().map(|size| size.map(|side| (side / 2).max(1)));
    (!setup.image_sizes.is_empty()).then(|| Change::ImageSizes(halved.collect()))
}

/// Other choices. Optimizers that take the same memory are represented by one; training on preferences or on rewards is
/// another task, to or from which no trainer is changed, and so is a loss without a reference model.
fn choices(setup: &Setup) -> impl Iterator<Item = Change> {
    let has_task = |trainer: TrainerKind| trainer.is_dpo() || trainer == TrainerKind::TrlGrpo;
    let (of_task, reference) = (has_task(setup.trainer), setup.reference);
    let is_other_task = move |change: &Change| match change {
        Change::Trainer(trainer) => of_task || has_task(*trainer),
        Change::Reference(other) => [reference, *other].contains(&Reference::None),
        _ => false,
    };
    Setting::by_group()
        .filter(|setting| setting.declaration().alternatives == Alternatives::Each)
        .flat_map(|setting| match setting {
            Setting::Optim => optimizers::tried().map(Change::Optim).collect(),
            _ => setting.every(),
        })
        .filter(move |change| !is_other_task(change))
}

/// Returns true if a model that takes this has what the change needs, and the setup uses the setting.
fn applies(change: &Change, takes: Takes, setup: &Setup) -> bool {
    let setting = change.setting();
    let declared = setting.declaration();
    let value_needs = match declared.kind {
        Kind::Choice(choices) => choices.needs_of(&change.text()).met_by(takes),
        _ => true,
    };
    value_needs && declared.needs.met_by(takes) && declared.depends.met_by(setup) && !setting.is_decided(setup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use vramscope_engine::setup::{Freeze, Precision};

    fn all(name: &str, setup: &Setup) -> Vec<(&'static str, String)> {
        let model = Model::from_catalogue(name).unwrap();
        let changes = changes(&model, setup);
        changes.into_iter().map(|c| (c.setting().key(), c.text())).collect()
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
        for change in changes(&model, &setup) {
            let mut expected = serde_json::to_value(&setup).unwrap();
            let value = change.text();
            expected[change.setting().key()] = serde_json::from_str(&value).unwrap_or(Value::String(value));
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
    fn adapters_images_and_lengths_change_where_there_are_any() {
        let plain = all("qwen2.5-vl-3b", &Setup::default());
        for key in ["rank", "lora_targets", "lora_dtype", "image_sizes", "packing"] {
            assert!(!plain.iter().any(|(of, _)| *of == key), "{key}");
        }
        let setup = Setup {
            freeze: Freeze::Lora,
            image_sizes: vec![[720, 1280]],
            lengths: vec![2048, 1024],
            ..Setup::default()
        };
        let changed = all("qwen2.5-vl-3b", &setup);
        for change in [
            ("rank", "8"),
            ("rank", "32"),
            ("lora_targets", "all-linear"),
            ("lora_dtype", "bf16"),
            ("image_sizes", "360x640"),
            ("packing", "packed"),
            ("trainer", "trl_sft"),
        ] {
            assert!(
                changed.contains(&(change.0, change.1.into())),
                "{change:?}: {changed:?}"
            );
        }
        assert!(!changed.iter().any(|(_, value)| value == "trl_dpo"), "another task");
    }

    #[test]
    fn every_choice_of_the_vocabulary_is_tried_once() {
        let words: Vec<_> = choices(&Setup::default())
            .map(|c| (c.setting().key(), c.text()))
            .collect();
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
