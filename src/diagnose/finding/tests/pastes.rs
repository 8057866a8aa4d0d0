//! Pastes of several kinds of evidence, and of none.

use super::*;

/// Finds several kinds of evidence in one paste, among text that no reader recognises.
#[test]
fn a_paste_of_everything_is_taken_apart() {
    let text = format!(
        "hello,\n\u{1b}[31m{FULL}\u{1b}[0m\n\nlog:\r\n{LEAK}\nand Name  CPU %  CUDA %\nName  CPU %  CUDA %\nDataLoader  25.1%  0.0%\n{{'allocated_bytes.all.current': 900, 'reserved_bytes.all.current': 1000}}\nthanks"
    );
    let pieces = read(text.as_bytes()).expect("four kinds");
    let names: Vec<_> = pieces.iter().map(|piece| piece.evidence.name()).collect();
    assert_eq!(
        names,
        [
            "text",
            "out-of-memory error",
            "training log",
            "profiler output",
            "allocator counters"
        ]
    );
    assert_eq!(pieces[1].line, 2);
    let findings = diagnose(&pieces, &Context::default());
    assert!(findings.is_sorted_by_key(|finding| finding.confidence));
    // A run that grew until it failed did start with enough memory.
    assert_eq!(find(&findings, "out-of-capacity").confidence, Confidence::Possible);
    let Cause::Leak(growth) = &find(&findings, "leak").cause else {
        panic!()
    };
    assert!(growth.risk.is_some(), "the error tells the card's memory");
}

#[test]
fn every_finding_has_words_and_numbers() {
    let text = format!("{FULL}\n{LEAK}\nName  CPU %  CUDA %\nDataLoader  25.1%  0.0%\nnccl  1%  20%");
    let english = words::Phrases::english();
    let is_filled = |text: &str| text.contains(' ') && !text.contains("{{");
    for finding in of(&text) {
        let title = english.text_of(&words::title(&finding.cause, finding.confidence));
        assert!(is_filled(&title), "{title}");
        let evidence = words::evidence(&finding.cause);
        let evidence: Vec<String> = evidence.iter().map(|said| english.text_of(said)).collect();
        let has_number = |line: &String| line.chars().any(|c| c.is_ascii_digit());
        assert!(
            !evidence.is_empty() && evidence.iter().all(|line| is_filled(line) && has_number(line)),
            "{evidence:?}"
        );
        let steps = finding.steps.iter().map(|step| english.text_of(&words::step(*step)));
        assert!(
            steps.into_iter().all(|step| is_filled(&step) && step.ends_with('.')),
            "{finding:?}"
        );
        assert!(!finding.row().is_empty());
    }
}

#[test]
fn what_is_not_understood_is_answered_with_what_is() {
    let findings = of("my model does not train");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].cause.code(), "nothing-failed-here");
    let refusal = read(b" \n").expect_err("empty");
    assert!(refusal.to_string().contains("nvidia-smi"), "{refusal}");
    assert!(read(b"\x1f\x8b\x08").expect_err("packed").to_string().contains("gzip"));
    assert!(read(b"PK\x03\x04").expect_err("packed").to_string().contains("zip"));
    assert!(matches!(read(b"\x80\x04}."), Err(crate::Unrecognised::Snapshot(_))));
}

#[test]
fn a_recorded_snapshot_tells_what_held_its_peak() {
    use std::io::Read;
    let gzipped: &[u8] = include_bytes!("../../../../tests/data/snapshots/gpt2-bf16.pickle.gz");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(gzipped)
        .read_to_end(&mut bytes)
        .expect("gzip");
    let pieces = read(&bytes).expect("a snapshot");
    let Evidence::Snapshot(summary) = &pieces[0].evidence else {
        panic!()
    };
    // The replay may differ from the allocator's own counter by at most the remainders of unsplit blocks.
    let played = summary.expandable.expect("it has no expandable segments");
    assert_eq!(played.allocated, Bytes::new(2_013_018_112));
    assert_eq!(played.reserved, Bytes::new(2_227_175_424));
    assert!(summary.is_from_start);
    let rounded = 2_013_018_112 - summary.peak.get();
    assert!(rounded < 32 << 20, "{rounded}");
    let findings = diagnose(&pieces, &Context::default());
    let Cause::Peak { by_category, .. } = &find(&findings, "peak").cause else {
        panic!()
    };
    let of = |wanted| {
        by_category
            .iter()
            .find(|(category, _)| *category == wanted)
            .map_or(0, |(_, bytes)| bytes.get())
    };
    use crate::snapshot::Category::{Activation, OptimizerState, Weight};
    // 124,439,808 parameters of 2 bytes; the head's own weight is created and then discarded, as it is tied.
    assert!((248_879_616..252 << 20).contains(&of(Weight)), "{by_category:?}");
    // Two optimizer states of each parameter.
    assert!(
        (497_759_232..520 << 20).contains(&of(OptimizerState)),
        "{by_category:?}"
    );
    assert!(of(Activation) > 0);
    assert!(!has(&findings, "leak"));
}
