//! Tests of steps, their figures, and the attribution of tensors.

use super::super::report;
use super::run;
use super::text::{Text, Written};
use crate::report::Phase;
use crate::tape::{Component, Kind, Why};
use crate::units::Bytes;

const MIB: u64 = 1 << 20;

/// Returns steps of two micro-batches: 2 MiB of weights, 4 MiB of activations, a gradient of 2 MiB, 8 MiB of optimizer
/// states.
fn trained(steps: u64) -> Text {
    let mut text = Text::new();
    text.line(r#"{"t":"module","id":0,"name":"","class":"Net"}"#);
    text.line(r#"{"t":"module","id":1,"name":"embed_tokens","class":"Embedding","parent":0}"#);
    text.line(r#"{"t":"module","id":2,"name":"lm_head","class":"Linear","parent":0}"#);
    text.line(r#"{"t":"node","id":0,"name":"MulBackward0"}"#);
    let weight = text.tensor("f32", &[MIB / 2]);
    let meta = weight.name.rsplit(':').next().unwrap().trim_end_matches('"').to_owned();
    text.line(format!(
        r#"{{"t":"param","id":0,"name":"embed_tokens.weight","module":1,"s":{},"m":{meta},"trainable":true}}"#,
        weight.storage
    ));
    for step in 0..steps {
        text.marks(&["step"]);
        let first = micro_batch(&mut text, &weight);
        text.line(format!(r#"{{"t":"why","s":{},"is":"gradient","p":0}}"#, first.storage));
        let second = micro_batch(&mut text, &weight);
        text.free(&[&second]);
        text.marks(&["optimizer"]);
        for name in ["exp_avg", "exp_avg_sq"].into_iter().filter(|_| step == 0) {
            let id = text.tensor("f32", &[MIB]).storage;
            text.line(format!(r#"{{"t":"why","s":{id},"is":"state","p":0,"name":"{name}"}}"#));
        }
        text.marks(&["optimizer_end"]);
        text.free(&[&first]);
        text.marks(&["step_end"]);
    }
    text
}

/// Writes forward and backward; the gradient stays live.
fn micro_batch(text: &mut Text, weight: &Written) -> Written {
    let op = |text: &mut Text, name: &str, x: &Written, keys: &str, shape: &[u64]| {
        text.op(name, &x.name, keys, &[("f32", shape)]).remove(0)
    };
    let batch = text.tensor("i64", &[64]);
    let id = batch.storage;
    text.line(format!(r#"{{"t":"why","s":{id},"is":"batch","name":"input_ids"}}"#));
    text.marks(&["forward"]);
    let kept = op(text, "aten.mul.Tensor", weight, r#","mod":1"#, &[MIB]);
    text.line(format!(r#"{{"t":"why","s":{},"is":"saved","v":0}}"#, kept.storage));
    let logits = op(text, "aten.mul.Tensor", &kept, r#","mod":2"#, &[MIB]);
    let loss = op(text, "aten.sum.default", &logits, r#","mod":0"#, &[]);
    text.marks(&["forward_end"]);
    text.free(&[&logits]);
    let scaled = op(text, "aten.div.Tensor", &loss, "", &[]);
    text.marks(&["backward"]);
    let gradient = op(text, "aten.mul.Tensor", &kept, r#","b":1,"v":0,"mod":1"#, &[MIB / 2]);
    text.free(&[&kept]);
    text.marks(&["backward_end"]);
    // The second gradient is added to that of the first micro-batch and freed.
    text.free(&[&scaled]);
    text.line(r#"{"t":"ask","what":"memory_allocated","i":0}"#);
    text.free(&[&loss, &batch]);
    gradient
}

/// Returns whole MiB, and the rest in blocks of 512 bytes.
fn parts(bytes: Bytes) -> (u64, u64) {
    (bytes.get() / MIB, bytes.get() % MIB / 512)
}

#[test]
fn figures_are_those_of_the_last_micro_batch() {
    let played = report(run(&trained(2))).unwrap();
    let report = &played.report;
    let [first, steady] = [report.first, report.steady];
    assert_eq!(parts(report.after_model), (2, 0));
    // The gradient of the first micro-batch is live in the second.
    assert_eq!(parts(first.before_forward), (4, 1));
    assert_eq!(parts(steady.before_forward), (12, 1));
    assert_eq!(parts(steady.after_forward), (16, 2));
    // Thread blocks share partial sums of the loss, and semaphores.
    assert_eq!(parts(steady.peak_forward), (20, 4));
    assert_eq!(parts(steady.after_backward), (14, 2));
    assert_eq!(parts(steady.peak_backward), (18, 3));
    assert_eq!(parts(steady.peak_optimizer), (14, 2));
    assert_eq!(parts(first.peak_optimizer), (12, 0));
    assert_eq!(parts(steady.end), (10, 0));
    assert_eq!(report.peak_phase, Phase::Forward);
    assert_eq!((report.params, report.trainable), (MIB / 2, MIB / 2));
    assert!(report.peak_reserved >= report.peak_allocated);
    let asked: Vec<_> = played.asked.iter().map(|answer| parts(answer.unwrap())).collect();
    assert_eq!(asked, [(4, 2), (6, 2), (12, 2), (14, 2)]);
}

#[test]
fn tensors_say_what_they_are_and_why_they_live() {
    let report = report(run(&trained(2))).unwrap().report;
    let live = report.timeline.largest_at(report.timeline.peak_instant(), 99);
    let said: Vec<_> = live
        .iter()
        .map(|t| (&*t.name, &*t.layer, t.component, t.kind, t.why))
        .collect();
    let words = Component::LanguageModel;
    assert!(said.contains(&("exp_avg", "embed_tokens", words, Kind::OptimizerState, Why::State)));
    assert!(said.contains(&("weight", "embed_tokens", words, Kind::Weight, Why::Parameter)));
    assert!(said.contains(&(
        "mul",
        "embed_tokens",
        words,
        Kind::Activation,
        Why::NeededBy("MulBackward0")
    )));
    assert!(said.contains(&("mul", "lm_head", Component::Head, Kind::Temporary, Why::InUse)));
    assert!(said.contains(&("mul", "embed_tokens", words, Kind::Gradient, Why::Gradient)));
    assert!(said.contains(&("input_ids", "", Component::Run, Kind::Input, Why::Batch)));
    // The outermost module computes the loss after its head.
    assert!(said.contains(&("sum", "loss", Component::Head, Kind::Temporary, Why::InUse)));
    let total: u64 = live.iter().map(|t| t.bytes.get()).sum();
    assert_eq!(report.breakdown.bytes.get(), total);
}

#[test]
fn one_step_is_played_with_a_warning() {
    let codes = |steps| -> Vec<String> {
        let report = report(run(&trained(steps))).unwrap().report;
        report.warnings.iter().map(|warning| warning.code.to_string()).collect()
    };
    assert!(codes(1).contains(&"recording-one-step".into()));
    assert!(!codes(3).contains(&"recording-one-step".into()));
}

#[test]
fn a_cache_that_the_script_empties_is_given_back() {
    let mut text = Text::new();
    let large = text.tensor("u8", &[100 * MIB]);
    text.free(&[&large]);
    text.line(r#"{"t":"ask","what":"memory_reserved","i":0}"#);
    text.line(r#"{"t":"empty_cache"}"#);
    text.line(r#"{"t":"ask","what":"memory_reserved","i":1}"#);
    text.line(r#"{"t":"ask","what":"max_memory_allocated","i":2}"#);
    text.line(r#"{"t":"reset_peak"}"#);
    text.line(r#"{"t":"ask","what":"max_memory_allocated","i":3}"#);
    text.line(r#"{"t":"ask","what":"mem_get_info","i":4}"#);
    text.marks(&["step", "forward", "backward"]);
    text.tensor("u8", &[MIB]);
    text.marks(&["backward_end", "optimizer", "optimizer_end", "step_end"]);
    let played = report(run(&text)).unwrap();
    let asked: Vec<_> = played.asked.iter().map(|answer| answer.map(Bytes::get)).collect();
    let mib = |mib: u64| Some(mib * MIB);
    assert_eq!(asked, [mib(100), mib(0), mib(100), mib(0), None]);
    // Memory released before the steps does not count towards their peak.
    assert_eq!(played.report.peak_reserved, Bytes::mib(2));
}

#[test]
fn a_script_without_an_optimizer_is_played_with_a_warning() {
    let mut text = Text::new();
    text.marks(&["step", "forward", "backward"]);
    text.tensor("u8", &[MIB]);
    text.marks(&[
        "backward_end",
        "step_end",
        "step",
        "forward",
        "backward",
        "backward_end",
        "step_end",
    ]);
    let report = report(run(&text)).unwrap().report;
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.code == "recording-no-update")
    );
}
