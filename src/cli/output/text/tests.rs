//! Tests the layout of text with a synthetic report.

use anstream::adapter::strip_str;
use vramscope_engine::device::Device;
use vramscope_engine::report::{BreakdownNode, Phase, Reserved, SegmentLayout, Severity, StepBytes, Timeline, Warning};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Fit;
use vramscope_engine::{Report, Setup};
use vramscope_launch::OfLengths;

use super::Estimate;
use crate::output::ascii;
use crate::output::target::Target;

fn node(name: &str, children: Vec<BreakdownNode>) -> BreakdownNode {
    BreakdownNode {
        name: name.into(),
        bytes: children.iter().map(|child| child.bytes).sum(),
        children,
    }
}

fn leaf(name: &str, mib: u64) -> BreakdownNode {
    BreakdownNode {
        name: name.into(),
        bytes: Bytes::mib(mib),
        children: Vec::new(),
    }
}

fn breakdown() -> BreakdownNode {
    let language = [
        ("optimizer states", 25_100),
        ("weights", 12_550),
        ("activations", 9_500),
        ("temporaries", 810),
    ];
    let vision = [("activations", 2_900), ("weights", 580), ("inputs", 4)];
    let run = [("workspaces", 64), ("inputs", 1)];
    let part = |name, kinds: &[(&str, u64)]| node(name, kinds.iter().map(|&(kind, mib)| leaf(kind, mib)).collect());
    node(
        "total",
        vec![
            part("language model", &language),
            part("vision tower", &vision),
            part("run", &run),
        ],
    )
}

fn report() -> Report {
    let breakdown = breakdown();
    let peak = breakdown.bytes;
    let steady = StepBytes {
        peak_forward: Bytes::mib(39_000),
        peak_backward: peak,
        peak_optimizer: Bytes::mib(28_500),
        ..StepBytes::default()
    };
    let warning = |code: &'static str, severity, message: &str| Warning {
        code: code.into(),
        severity,
        message: message.into(),
        args: Vec::new(),
    };
    Report {
        params: 7_063_427_072,
        trainable: 6_759_915_520,
        after_model: Bytes::mib(13_130),
        first: steady,
        steady,
        peak_allocated: peak,
        peak_reserved: peak + Bytes::mib(612),
        reserved: [
            (SegmentLayout::FreshProcess, peak + Bytes::mib(204)),
            (SegmentLayout::UsedProcess, peak + Bytes::mib(612)),
        ]
        .map(|(layout, bytes)| Reserved {
            layout,
            bytes,
            segments: vec![(bytes, 1)],
        })
        .into(),
        fragmentation: Bytes::mib(420),
        paged: Bytes::ZERO,
        peak_phase: Phase::Backward,
        breakdown: breakdown.into(),
        timeline: Timeline::default(),
        outputs: None,
        is_compiled: false,
        warnings: vec![
            warning(
                "a-note",
                Severity::Note,
                "Frozen is not free: 2.83 GiB of the vision tower's activations are kept.",
            ),
            warning(
                "logits",
                Severity::Warning,
                "The fp32 copy of the logits takes 4 × 2048 × 32064 × 4 bytes twice; fused linear cross-entropy \
                 would not make it.",
            ),
        ],
    }
}

fn shown(target: Option<Target>, width: usize) -> String {
    let (report, setup) = (
        report(),
        Setup {
            batch: 4,
            ..Setup::default()
        },
    );
    let target = target.map(|target| (target, Fit::of(&report, target.room())));
    let estimate = Estimate {
        left_out: &[],
        lengths: OfLengths::default(),
        many_lengths: None,
        time: None,
        model: "llava-1.5-7b",
        setup: &setup,
        parallel: None,
        report: &report,
        target,
        around: None,
    };
    strip_str(&estimate.render(width)).to_string()
}

fn card(name: &str) -> Option<Target> {
    Some(Target::Card(Device::by_name(name).unwrap()))
}

#[test]
fn a_fitting_run() {
    insta::assert_snapshot!(shown(card("H100 SXM"), 80));
}

#[test]
fn a_run_out_of_memory_on_a_narrow_terminal_without_unicode() {
    let text = ascii::fold(&shown(card("RTX 4090"), 48));
    assert!(text.is_ascii());
    insta::assert_snapshot!(text);
}

#[test]
fn a_limit_of_the_allocator_leaves_out_what_lies_outside() {
    let text = shown(Some(Target::Limit(Bytes::mib(52_000))), 100);
    assert!(text.starts_with("llava-1.5-7b  7.06 B parameters, 6.76 B trained\n"));
    assert!(text.contains("\nTIGHT"), "{text}");
    assert!(!text.contains("CUDA"), "{text}");
}

#[test]
fn without_a_card_it_says_how_to_get_a_verdict() {
    assert!(shown(None, 80).contains("--gpu"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [48, 60, 80, 100] {
        for line in shown(card("RTX 4090"), width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}
