//! Tests of settings.

use super::*;

/// Keys of cases and links, which keep working.
const FIXED: [&str; 28] = [
    "batch",
    "seq",
    "lengths",
    "packing",
    "images",
    "image",
    "grid",
    "image_sizes",
    "frames",
    "precision",
    "optim",
    "ckpt",
    "attn",
    "packages",
    "freeze",
    "rank",
    "lora_dropout",
    "lora_targets",
    "lora_experts",
    "lora_dtype",
    "accum",
    "clip",
    "zero_grad",
    "autocast_cache",
    "ema",
    "loss",
    "use_cache",
    "compile",
];

#[test]
fn keys_of_cases_are_settings() {
    for key in FIXED {
        assert!(Setting::named(key).is_some(), "{key}");
    }
}

#[test]
fn a_setting_is_the_field_that_its_key_names() {
    let written = serde_json::to_value(Setup::default()).expect("a setup is JSON");
    let keys: Vec<&String> = written.as_object().expect("an object").keys().collect();
    let settings: Vec<&str> = Setting::ALL.iter().map(|setting| setting.key()).collect();
    assert_eq!(keys, settings);
    for setting in Setting::ALL {
        let change = setting.change(written[setting.key()].clone()).expect("its own value");
        assert_eq!(change, setting.of(&Setup::default()));
        assert_eq!(change.setting(), *setting);
    }
}

#[test]
fn every_setting_is_in_one_group_and_says_what_it_is() {
    let mut grouped: Vec<Setting> = Setting::by_group().collect();
    grouped.sort();
    assert_eq!(grouped, Setting::ALL);
    for setting in Setting::ALL {
        let declared = setting.declaration();
        assert!(!declared.about.is_empty(), "{setting:?}");
        // What is absent by default is the model's own, unless it lists samples that differ.
        let is_absent = matches!(setting.of(&Setup::default()).text().as_str(), "" | "model");
        let is_list = matches!(declared.kind, super::super::Kind::Lengths | super::super::Kind::Sizes);
        assert_eq!(is_absent && !is_list, !declared.absent.is_empty(), "{setting:?}");
    }
}

#[test]
fn what_can_be_swept_is_a_number() {
    for setting in Setting::ALL
        .iter()
        .filter(|setting| setting.declaration().sweep.is_some())
    {
        let change = setting.count(3).expect("a number");
        assert_eq!(change.count(), Some(3));
        assert_eq!(setting.of(&change.apply(&Setup::default())), change);
    }
}
