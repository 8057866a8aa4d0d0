//! Tests of reading profiler tables and traces.

use super::*;
use crate::{Evidence, Piece};

fn profile(pieces: Vec<Piece>) -> Profile {
    assert_eq!(pieces.len(), 1, "{pieces:?}");
    match pieces.into_iter().next().map(|piece| piece.evidence) {
        Some(Evidence::Profile(profile)) => profile,
        other => panic!("{other:?}"),
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

const TORCH: &str = "\
-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
                                                   Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA   Self CUDA %    CUDA total  CUDA time avg    # of Calls
-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
                                               aten::mm        20.00%     200.000ms        25.00%     250.000ms       1.000ms     400.000ms        50.00%     400.000ms       1.600ms           250
enumerate(DataLoader)#_MultiProcessingDataLoaderIter...        40.00%     400.000ms        40.00%     400.000ms       4.000ms       0.000us         0.00%       0.000us       0.000us           100
                 ncclDevKernel_AllReduce_Sum_f32_RING_LL         0.00%       0.000us         0.00%       0.000us       0.000us     240.000ms        30.00%     240.000ms       2.400ms           100
-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 1.000s
Self CUDA time total: 800.000ms
";

#[test]
fn the_table_of_pytorch_is_read() {
    let profile = profile(find_table(TORCH));
    assert_eq!(profile.ops.len(), 3);
    assert!(close(profile.host(Work::Data), 0.4), "{profile:?}");
    assert!(close(profile.device(Work::Communication), 0.3));
    assert!(close(profile.device(Work::Matmul), 0.5));
    assert_eq!(profile.busy, Some(0.8));
}

#[test]
fn tables_of_other_shapes_are_read() {
    for text in [
        "Name | CPU % | CUDA %\n--- | --- | ---\naten::matmul | 45.2% | 52.1%\nDataLoader | 25.1% | 0.0%",
        "| Operation | CPU total % | CUDA total % |\n|---|---|---|\n| aten::matmul | 45.2 | 52.1 |\n| DataLoader | 25.1 | 0.0 |",
        "Name                CPU time    CUDA time\naten::matmul           45.2%        52.1%\nDataLoader             25.1%         0.0%",
        "Name  CPU %  CUDA %\naten::matmul 45.2 52.1\nDataLoader 25.1 0",
    ] {
        let profile = profile(find_table(text));
        assert!(close(profile.host(Work::Data), 0.251), "{text}\n{profile:?}");
        assert!(close(profile.device(Work::Matmul), 0.521), "{text}\n{profile:?}");
    }
}

#[test]
fn memory_columns_give_hot_spots() {
    let text = "Name    Self CPU %    Self CUDA %    CUDA Mem    Self CUDA Mem    # of Calls\naten::softmax    1.00%    2.00%    1.50 Gb    1.50 Gb    3\naten::mm    1.00%    2.00%    -512 b    -512 b    3";
    let profile = profile(find_table(text));
    assert_eq!(profile.hot_spots.len(), 1);
    assert_eq!(profile.hot_spots[0].bytes.get(), 3 << 29);
}

const TRACE: &str = r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "ts": 0, "dur": 100, "args": {"x": [1, {"y": 2}]}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#8", "ts": 100, "dur": 100},
{"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "ts": 0.0, "dur": 60.0},
{"ph": "X", "cat": "kernel", "name": "ampere_bf16_gemm mm", "ts": 60, "dur": 20, "args": {"stream": 7}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 70, "dur": 20, "args": {"stream": 8}},
{"ph": "i", "name": "[memory]", "ts": 61, "args": {"Device Type": 1, "Bytes": 1024, "Total Allocated": 4096}},
{"ph": "i", "name": "[memory]", "ts": 161, "args": {"Device Type": 1, "Bytes": 1024, "Total Allocated": 8192}},
{"ph": "i", "name": "[memory]", "ts": 162, "args": {"Device Type": 0, "Bytes": 1024, "Total Allocated": 99999}},
{"ph": 5, "name": null, "ts": "later", "dur": {}, "args": 7, "cat": []}
]}"#;

#[test]
fn a_trace_adds_up() {
    let of_object = read_trace(TRACE.as_bytes()).expect("a trace");
    assert_eq!(of_object.busy, Some(30.0 / 200.0));
    assert!(close(of_object.host(Work::Data), 0.3));
    assert!(close(of_object.device(Work::Communication), 0.5));
    let memory: Vec<_> = of_object.memory.iter().map(|p| (p.step, p.bytes.get())).collect();
    assert_eq!(memory, [(7, 4096), (8, 8192)]);
    let (begin, end) = (
        TRACE
            .find(
                r#"[
{"ph"#,
            )
            .expect("events"),
        TRACE.len() - 1,
    );
    assert_eq!(read_trace(&TRACE.as_bytes()[begin..end]), Some(of_object));
}

/// A run that crashes leaves a truncated trace.
#[test]
fn a_cut_trace_tells_what_it_has() {
    for len in 0..TRACE.len() {
        if let Some(profile) = read_trace(&TRACE.as_bytes()[..len]) {
            assert!(profile.busy.is_none_or(|busy| busy <= 1.0));
        }
    }
    assert!(read_trace(&TRACE.as_bytes()[..700]).is_some());
    assert_eq!(read_trace(br#"{"traceEvents": []}"#), None);
}
