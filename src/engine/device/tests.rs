//! Tests of the card data files and of looking cards up by name.

use proptest::prelude::*;

use super::*;

fn device(name: &str) -> &'static Device {
    Device::by_name(name).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn figures_are_of_possible_size() {
    for d in Device::all() {
        let gib = d.memory().as_gib();
        assert!((8.0..=512.0).contains(&gib), "{}: {gib} GiB", d.name);
        assert!(
            d.usable() <= d.memory() && d.usable().as_gib() > 0.9 * gib,
            "{}: {}",
            d.name,
            d.usable()
        );
        let bandwidth = d.bandwidth().map(Bandwidth::as_gb_per_s);
        assert!(bandwidth.is_none_or(|b| (250.0..=8000.0).contains(&b)), "{}", d.name);
        assert!(!d.source.is_empty(), "{} needs a source", d.name);
    }
}

#[test]
fn sixteen_bit_tensor_rates_are_at_least_those_of_fp32() {
    for d in Device::all() {
        if let (Some(fp32), Some(fp16)) = (d.peak(DType::F32), d.peak(DType::F16)) {
            assert!(fp16 >= fp32, "{}", d.name);
        }
    }
}

#[test]
fn every_name_and_alias_finds_its_own_card() {
    for d in Device::all() {
        for name in d.names() {
            assert_eq!(device(name).name, d.name, "{name}");
        }
    }
}

#[test]
fn names_are_read_without_case_spacing_and_maker() {
    for (given, expected) in [
        ("4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("nvidia geforce rtx 4090", "RTX 4090"),
        ("h200", "H200"),
        ("a100-80gb-sxm", "A100 80GB SXM"),
        ("mi300x", "MI300X"),
        ("4070 ti super", "RTX 4070 Ti SUPER"),
        ("rtx-4090-24gb", "RTX 4090"),
        ("a100-80g", "A100 80GB SXM"),
        ("A100-SXM4-80GB", "A100 80GB SXM"),
        ("80 GB A100", "A100 80GB SXM"),
        ("a100-40g", "A100 40GB SXM"),
        ("a100 pcie", "A100 80GB PCIe"),
        ("h100-sxm5", "H100 SXM"),
        ("H100 80GB", "H100 SXM"),
        ("h100 nvl 94gb", "H100 NVL"),
        ("l40s 48g", "L40S"),
        ("Apple M3 Max", "M3 Max 36GB"),
    ] {
        assert_eq!(device(given).name, expected);
    }
}

#[test]
fn a_family_s_name_takes_its_most_common_board_and_names_the_others() {
    for (given, expected, others) in [
        ("h100", "H100 SXM", vec!["H100 PCIe", "H100 NVL"]),
        ("NVIDIA A100", "A100 80GB SXM", vec!["A100 40GB SXM", "A100 80GB PCIe"]),
        ("v100", "V100 16GB", vec!["V100 32GB"]),
    ] {
        let found = Device::find(given).unwrap();
        let names: Vec<_> = found.others.iter().map(|card| card.name).collect();
        assert_eq!((found.card.name, names), (expected, others), "{given}");
    }
    assert!(Device::find("RTX 4090").unwrap().others.is_empty());
}

#[test]
fn a_family_has_one_most_common_board() {
    let mut families: Vec<_> = Device::all().iter().filter_map(|card| card.stands_for).collect();
    families.sort_unstable();
    assert!(families.windows(2).all(|pair| pair[0] != pair[1]), "{families:?}");
    for card in Device::all() {
        if let Some(family) = card.stands_for {
            assert_eq!(device(family).name, card.name);
        }
    }
}

#[test]
fn an_unfinished_name_lists_what_it_may_be() {
    let error = Device::by_name("rtx 50").unwrap_err().to_string();
    assert_eq!(
        error,
        "\"rtx 50\" may be any of: RTX 5070, RTX 5070 Ti, RTX 5080, RTX 5090"
    );
    // Several families match, and none is the obvious one.
    assert!(Device::by_name("m3").is_err());
    assert!(Device::by_name("h").is_err());
}

#[test]
fn an_unknown_name_lists_near_ones() {
    let error = Device::by_name("RTX 4900").unwrap_err().to_string();
    assert!(
        error.starts_with("no card is named \"RTX 4900\"; did you mean: RTX 4"),
        "{error}"
    );
}

#[test]
fn the_measured_card_is_as_measured() {
    let h200 = device("NVIDIA H200");
    assert_eq!(h200.usable(), Bytes::new(150_109_880_320));
    assert_eq!(h200.driver_total(), Some(Bytes::mib(143_771)));
    assert_eq!(
        h200.compute_capability.map(|c| c.max_threads_per_multiprocessor()),
        Some(2048)
    );
}

proptest! {
    #[test]
    fn any_name_is_answered(name in ".{0,80}") {
        if let Err(error) = Device::by_name(&name) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

#[test]
fn the_reference_card_is_the_simulation_s_default() {
    let card = Device::by_name(REFERENCE).unwrap();
    assert_eq!(card.gpu(), Some(crate::tape::Gpu::default()));
    assert_eq!(Device::by_name("MI300X").unwrap().gpu(), None);
}
