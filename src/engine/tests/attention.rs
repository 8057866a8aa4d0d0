//! Properties of attention: the formula adds up to the bytes, and algorithms rank as they must.

use proptest::prelude::*;
use vramscope_engine::attention::{Algorithm, Call, Pass, memory, time};
use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::Gpu;

fn calls() -> impl Strategy<Value = Call> {
    let sizes = (
        1..4u64,
        1..5u64,
        1..4u64,
        prop_oneof![Just(32u64), Just(64), Just(80), Just(128)],
    );
    let choices = (any::<bool>(), any::<bool>(), any::<bool>());
    (sizes, choices, (2..300u64, 1..60u64, 1..200u64)).prop_map(|(sizes, choices, own)| {
        let (batch, kv_heads, shared, width) = sizes;
        let (half, causal, trains) = choices;
        Call {
            batch,
            heads: kv_heads * shared,
            kv_heads,
            width,
            dtype: if half { DType::Bf16 } else { DType::F32 },
            causal,
            window: own.0,
            kept_percent: own.1,
            chunk: own.2,
            pass: if trains { Pass::Training } else { Pass::Forward },
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_formula_adds_up(call in calls(), algorithm in prop::sample::select(&Algorithm::ALL[..]), length in 1..700u64) {
        let Ok(found) = memory(&call, algorithm, length, Gpu::H200) else {
            prop_assert!(call.dtype == DType::F32, "only fp32 lacks kernels here");
            return Ok(());
        };
        for term in &found.terms {
            let value = term.count as f64 * term.elements.value() * term.width as f64;
            prop_assert_eq!(value, term.bytes.get() as f64, "{:?}", term);
        }
        let asked: u64 = found.terms.iter().map(|term| term.bytes.get()).sum();
        prop_assert_eq!(asked + found.rounding.get(), found.peak.get());
    }

    #[test]
    fn longer_never_takes_less(call in calls(), algorithm in prop::sample::select(&Algorithm::ALL[..]), length in 64..400u64) {
        let peak = |length| memory(&call, algorithm, length, Gpu::H200).map(|m| m.peak);
        if let (Ok(short), Ok(long)) = (peak(length), peak(2 * length)) {
            // FlashAttention splits the keys of short sequences, which takes memory.
            prop_assert!(short <= long || algorithm == Algorithm::Flash, "{short} then {long}");
        }
    }

    #[test]
    fn time_is_the_sum_of_kernels(call in calls(), length in 1..5000u64) {
        let card = Device::by_name("A100 80GB").or_else(|_| Device::by_name("H200")).unwrap();
        let found = time(&call, Algorithm::Standard, length, card).unwrap();
        let sum: f64 = found.kernels.iter().map(|k| k.time.get()).sum();
        prop_assert_eq!(sum, found.total.get());
        prop_assert!(found.total.get() > 0.0);
    }
}

fn course_call(algorithm_window: u64, pass: Pass) -> Call {
    // Batch 1, width 1024, 16 heads (exercise 9.6).
    Call {
        batch: 1,
        heads: 16,
        kv_heads: 16,
        width: 64,
        dtype: DType::Bf16,
        causal: false,
        window: algorithm_window,
        kept_percent: 10,
        chunk: 64,
        pass,
    }
}

#[test]
fn letters_and_numbers_say_the_same() {
    let call = course_call(512, Pass::Training);
    let found = memory(&call, Algorithm::Standard, 2048, Gpu::H200).unwrap();
    let largest = &found.terms[0];
    assert_eq!(
        largest.count, 4,
        "weights, their gradient, its product, the scores' gradient: {largest:?}"
    );
    assert_eq!(largest.elements.letters(), "B·H·L²");
    assert_eq!(largest.elements.numbers(), "1·16·2048²");
    assert_eq!(found.terms[1].elements.letters(), "B·H·L·D");
}

#[test]
fn top_k_holds_the_whole_matrix_and_chunks_hold_it_for_backward() {
    let peak = |algorithm, pass| {
        let call = course_call(512, pass);
        memory(&call, algorithm, 4096, Gpu::H200).unwrap().peak
    };
    assert!(peak(Algorithm::TopK, Pass::Forward) > peak(Algorithm::Standard, Pass::Forward));
    assert!(peak(Algorithm::Chunked, Pass::Forward).get() * 10 < peak(Algorithm::Standard, Pass::Forward).get());
    assert!(peak(Algorithm::Chunked, Pass::Training).get() * 5 > peak(Algorithm::Standard, Pass::Training).get());
    assert!(peak(Algorithm::Flash, Pass::Training).get() * 10 < peak(Algorithm::Standard, Pass::Training).get());
}

#[test]
fn what_a_card_lacks_is_refused() {
    let volta = Device::by_name("V100 32GB").or_else(|_| Device::by_name("T4")).unwrap();
    let refused = memory(
        &course_call(512, Pass::Forward),
        Algorithm::Flash,
        512,
        volta.gpu().unwrap(),
    )
    .unwrap_err();
    assert!(refused.0.contains("8.0"), "{refused}");
    let call = Call {
        kv_heads: 3,
        ..course_call(512, Pass::Forward)
    };
    assert!(
        memory(&call, Algorithm::Standard, 512, Gpu::H200)
            .unwrap_err()
            .0
            .contains("multiple")
    );
}
