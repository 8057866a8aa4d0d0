//! Tests of diagnosis on the course's own examples.

use super::*;
use crate::{Evidence, read};
use vramscope_engine::setup::{Attention, Freeze, Precision};
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup, simulate};

mod pastes;

fn of(text: &str) -> Vec<Finding> {
    with(text, &Context::default())
}

fn with(text: &str, context: &Context) -> Vec<Finding> {
    diagnose(&read(text.as_bytes()).expect("it is understood"), context)
}

fn find<'a>(findings: &'a [Finding], code: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.cause.code() == code);
    found.unwrap_or_else(|| panic!("no {code} in {findings:#?}"))
}

fn has(findings: &[Finding], code: &str) -> bool {
    findings.iter().any(|finding| finding.cause.code() == code)
}

/// The error of row 9.2.
const FULL: &str = "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)";

#[test]
fn a_full_card_is_not_fragmented() {
    let findings = of(FULL);
    assert_eq!(findings[0].cause.code(), "out-of-capacity");
    assert_eq!(
        findings[0].confidence,
        Confidence::Likely,
        "that it is full is no cause"
    );
    let fragmentation = find(&findings, "fragmentation");
    assert_eq!(fragmentation.confidence, Confidence::RuledOut);
    assert!(matches!(fragmentation.cause, Cause::Fragmentation { share, .. } if (share - 0.0023).abs() < 0.0001));
    // Something always fits: heads of a model that nobody named prove nothing.
    assert!(!has(&findings, "attention-matrix") && !has(&findings, "logits"));
    // What filled the card is not in the text, and is asked for.
    assert!(has(&findings, "facts-missing"));
}

/// The error of row L.oom.
#[test]
fn other_processes_hold_the_card() {
    let findings = of(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 26.00 MiB. GPU 0 has a total capacity of 15.57 GiB of which 23.06 MiB is free. Process 1001 has 12.57 GiB memory in use. Process 1002 has 2.10 GiB memory in use. Including non-PyTorch memory, this process has 510.00 MiB memory in use. Of the allocated memory 413.55 MiB is allocated by PyTorch, and 12.45 MiB is reserved by PyTorch but unallocated.",
    );
    assert_eq!(
        (findings[0].cause.code(), findings[0].confidence),
        ("other-processes", Confidence::Cause)
    );
    let Cause::OtherProcesses {
        held, own, processes, ..
    } = &findings[0].cause
    else {
        panic!()
    };
    assert_eq!((held.as_gib() * 100.0).round(), 1467.0);
    assert_eq!((own.expect("given").get() >> 20, processes.len()), (510, 2));
    assert!(
        !has(&findings, "out-of-capacity"),
        "the run itself needs next to nothing"
    );
    assert_eq!(findings[0].steps[0], Action::StopOthers);
}

/// The log of row 9.8.
const LEAK: &str = "Step 100: GPU memory 18.2 GB\nStep 200: GPU memory 18.5 GB\nStep 300: GPU memory 18.9 GB\nStep 400: GPU memory 19.4 GB\nStep 500: GPU memory 20.1 GB\nStep 600: GPU memory 20.9 GB\nStep 700: GPU memory 21.8 GB\nStep 800: GPU memory 22.9 GB\nStep 900: GPU memory 24.2 GB\n";

#[test]
fn a_leak_accelerates() {
    let findings = of(&format!("{LEAK}Step 1000: RuntimeError: CUDA out of memory\n"));
    let leak = &findings[0];
    assert_eq!(leak.confidence, Confidence::Cause);
    let Cause::Leak(growth) = &leak.cause else {
        panic!("{findings:#?}")
    };
    assert!(growth.is_accelerating);
    assert_eq!((growth.readings, growth.steps), (9, 800));
    // 0.75 GB in 100 steps, where the course says 0.67.
    assert!((growth.per_step * 100.0 / f64::from(1 << 30) - 0.75).abs() < 1e-6);
    let rises: Vec<i64> = growth
        .rises
        .iter()
        .map(|rise| (rise * 1024 / 100 + (1 << 29)) >> 30)
        .collect();
    assert_eq!(rises, [3, 4, 5, 7, 8, 9, 11, 13], "MB a step");
    for cause in [
        Action::DetachLoss,
        Action::NoLists,
        Action::CustomAutograd,
        Action::RemoveHooks,
    ] {
        assert!(leak.steps.contains(&cause), "{cause:?}");
    }
    assert!(!has(&findings, "no-numbers"));
}

/// Row 9.4: the regression over the last ten readings predicts ten readings ahead, on a card of 24 GiB.
#[test]
fn the_risk_is_that_of_the_regression() {
    let log = |slope: f64| -> String {
        (0..20)
            .map(|i| format!("step {i} mem {:.3} GiB\n", 16.0 + slope * f64::from(i)))
            .collect()
    };
    let context = Context {
        capacity: Some(Bytes::gib(24)),
        ..Context::default()
    };
    for (slope, risk) in [
        (0.15_f64, Some::<f64>((20.35 / 24.0 - 0.85) / 0.15)),
        (0.2, Some((21.8 / 24.0 - 0.85) / 0.15)),
        (0.4, Some(1.0)),
        (0.01, None),
    ] {
        let findings = with(&log(slope), &context);
        match risk {
            Some(risk) => {
                let Cause::Leak(growth) = &find(&findings, "leak").cause else {
                    panic!()
                };
                assert!(
                    (growth.risk.expect("the card is known") - risk.max(0.0)).abs() < 0.002,
                    "{slope}: {growth:?}"
                );
                assert!(!growth.is_accelerating);
            }
            None => assert_eq!(find(&findings, "no-leak").confidence, Confidence::RuledOut),
        }
    }
    let Cause::Leak(growth) = &find(&with(&log(0.4), &context), "leak").cause.clone() else {
        panic!()
    };
    assert_eq!(growth.full_at, Some(20), "16 + 0.4 × 20 = 24");
}

/// Optimizer states that appear in the first step are no leak.
#[test]
fn a_first_step_is_no_leak() {
    let log: String = [8.0, 12.0, 20.0, 20.1, 20.1, 20.1, 20.1, 20.1]
        .iter()
        .enumerate()
        .map(|(i, m)| format!("step {i} mem {m} GiB\n"))
        .collect();
    assert!(!has(&of(&log), "leak"));
}

#[test]
fn a_long_sample_stands_out() {
    let log: String = (0..20)
        .map(|i| {
            format!(
                "step {i} seq_len={} mem={} GiB\n",
                if i == 13 { 4096 } else { 512 },
                if i == 13 { 31.0 } else { 18.0 }
            )
        })
        .collect();
    let findings = of(&log);
    assert_eq!(find(&findings, "long-sample").confidence, Confidence::Likely);
    assert!(matches!(
        find(&findings, "long-sample").cause,
        Cause::LongSample {
            step: 13,
            length: Some(4096),
            ..
        }
    ));
}

/// The profile of row 11.1.
#[test]
fn data_loading_comes_before_communication() {
    let findings = of(
        "Name  CPU %  CUDA %\naten::matmul  45.2%  52.1%\naten::softmax  12.3%  15.2%\nDataLoader  25.1%  0.0%\nnccl:all_reduce  8.5%  18.3%\n",
    );
    assert_eq!(
        (findings[0].cause.code(), findings[0].confidence),
        ("data-loading", Confidence::Cause)
    );
    assert_eq!(
        (findings[1].cause.code(), findings[1].confidence),
        ("communication", Confidence::Likely)
    );
    assert!(matches!(findings[0].cause, Cause::DataLoading { share } if (share - 0.251).abs() < 1e-9));
}

#[test]
fn fragmentation_is_the_cause_where_the_bytes_were_there() {
    let findings = of(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.91 GiB is free. Including non-PyTorch memory, this process has 77.00 GiB memory in use. Of the allocated memory 56.00 GiB is allocated by PyTorch, and 20.05 GiB is reserved by PyTorch but unallocated.",
    );
    assert_eq!(
        (findings[0].cause.code(), findings[0].confidence),
        ("fragmentation", Confidence::Cause)
    );
    assert_eq!(findings[0].steps[0], Action::ExpandableSegments);
    assert_eq!(find(&findings, "out-of-capacity").confidence, Confidence::Possible);
}

#[test]
fn a_limit_is_not_the_card() {
    let findings = of(
        "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 23.69 GiB total capacity; 9.45 GiB already allocated; 12.89 GiB free; 10.00 GiB allowed; 9.50 GiB reserved in total by PyTorch)",
    );
    assert_eq!(
        (findings[0].cause.code(), findings[0].confidence),
        ("limit", Confidence::Cause)
    );
    assert!(!has(&findings, "refused-though-free"));
}

#[test]
fn a_refusal_with_room_is_said_to_be_one() {
    let findings = of(
        "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 3.68 GiB of which 3.48 GiB is free. Including non-PyTorch memory, this process has 154.00 MiB memory in use. Of the allocated memory 55.37 MiB is allocated by PyTorch, and 16.63 MiB is reserved by PyTorch but unallocated.",
    );
    assert_eq!(findings[0].cause.code(), "refused-though-free");
    assert!(!has(&findings, "out-of-capacity"));
}

/// The simulated step names the tensor of a request's size; common shapes are not tried.
#[test]
fn a_known_setup_names_the_tensor() {
    let model = Model::from_catalogue("gpt2").expect("it is there");
    let setup = Setup {
        batch: 4,
        seq: 1024,
        attn: Attention::Eager,
        precision: Precision::Fp32,
        ..Setup::default()
    };
    let report = simulate(&model, &setup).expect("it runs");
    let context = Context {
        report: Some(&report),
        ..Context::default()
    };
    // 4 × 12 heads × 1024² × 4 bytes.
    let findings = with(
        "CUDA out of memory. Tried to allocate 192.00 MiB (GPU 0; 8.00 GiB total capacity; 7.00 GiB already allocated; 100.00 MiB free; 7.10 GiB reserved in total by PyTorch)",
        &context,
    );
    let Cause::Tensors { tensors, .. } = &find(&findings, "tensors").cause else {
        panic!()
    };
    assert!(
        tensors.iter().any(|tensor| tensor.shape[..] == [4, 12, 1024, 1024]),
        "{tensors:?}"
    );
    assert!(find(&findings, "tensors").steps.contains(&Action::FusedAttention));
    assert!(!has(&findings, "attention-matrix"));
}

/// Facts of the setup that was given beside a paste count as those that the paste tells.
#[test]
fn adapters_of_a_known_setup_are_no_full_fine_tuning() {
    let model = Model::from_catalogue("qwen2.5-0.5b").expect("it is there");
    let paste = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of \
                 39.39 GiB of which 1.01 GiB is free. Of the allocated memory 36.90 GiB is allocated by PyTorch, and 500.00 \
                 MiB is reserved by PyTorch but unallocated.";
    let said = |freeze: Freeze| {
        let setup = Setup {
            freeze,
            seq: 64,
            ..Setup::default()
        };
        let report = simulate(&model, &setup).expect("it runs");
        let context = Context {
            report: Some(&report),
            ..Context::default()
        };
        has(&with(paste, &context), "fine-tuned-in-full")
    };
    assert!(has(&of(paste), "fine-tuned-in-full"));
    assert!(!said(Freeze::Lora) && !said(Freeze::NONE));
}

#[test]
fn logits_are_recognised() {
    // 8 × 2048 positions × 32064 × 4 bytes = 1.96 GiB.
    let findings = of(
        "--model_name_or_path llava-1.5-7b\nTraceback (most recent call last):\n  File \"loss_utils.py\", line 40, in fixed_cross_entropy\nCUDA out of memory. Tried to allocate 1.96 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.09 GiB free; 21.50 GiB reserved in total by PyTorch)",
    );
    let first = &findings[0];
    assert_eq!(
        (first.cause.code(), first.confidence),
        ("loss-logits", Confidence::Likely)
    );
    assert!(first.speaks_for.contains(&"phase=loss".to_owned()), "{first:?}");
    let english = words::Phrases::english();
    let why: Vec<String> = words::evidence(&first.cause)
        .iter()
        .map(|said| english.text_of(said))
        .collect();
    assert!(
        why.iter()
            .any(|line| line.contains("vocabulary") || line.contains("32064 entries")),
        "{why:?}"
    );
}

#[test]
fn counters_give_the_thresholds_of_the_course() {
    let stats = |allocated: u64| {
        format!(
            "{{'allocated_bytes.all.current': {allocated}, 'reserved_bytes.all.current': 1000, 'num_ooms': 1, 'num_alloc_retries': 2}}"
        )
    };
    for (allocated, confidence) in [
        (900, Confidence::RuledOut),
        (750, Confidence::Possible),
        (650, Confidence::Likely),
    ] {
        assert_eq!(find(&of(&stats(allocated)), "fragmentation").confidence, confidence);
    }
    assert!(has(&of(&stats(900)), "retries"));
}

#[test]
fn utilization_comes_in_bands() {
    let log = |percent: u32| -> String {
        let rows: String = (0..5).map(|_| format!("{percent} %, 20000 MiB, 24576 MiB\n")).collect();
        format!("utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n{rows}")
    };
    assert_eq!(find(&of(&log(40)), "utilization").confidence, Confidence::Likely);
    assert_eq!(find(&of(&log(97)), "utilization").confidence, Confidence::Note);
    assert!(!has(&of(&log(97)), "nearly-full"));
}
