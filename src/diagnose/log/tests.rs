//! Tests of reading training logs.

use super::*;

fn log(text: &str) -> TrainingLog {
    match find(text).map(|piece| piece.evidence) {
        Some(Evidence::Log(log)) => log,
        other => panic!("{text}: {other:?}"),
    }
}

fn first(text: &str) -> Vec<(u64, f64)> {
    let log = log(text);
    let points = log.series[0].points.iter();
    points
        .map(|point| (point.step, (point.bytes.as_gib() * 10.0).round() / 10.0))
        .collect()
}

#[test]
fn every_usual_way_of_writing_memory_is_read() {
    for text in [
        "Step 100: GPU memory 18.2 GB\nStep 200: GPU memory 18.5 GB",
        "step 100 | loss 2.31 | mem 18.2GB\nstep 200 | loss 2.30 | mem 18.5GB",
        "[2024-01-01 10:00:00] iteration 100/ 5000 | memory (MB): 18636.8 | x\n[2024-01-01 10:01:00] iteration 200/ 5000 | memory (MB): 18944 | x",
        "{'loss': 2.31, 'grad_norm': 1.5, 'memory(GiB)': 18.2, 'global_step': 100}\n{'loss': 2.3, 'grad_norm': 1.4, 'memory(GiB)': 18.5, 'global_step': 200}",
        "Epoch 0:  10%|█         | 100/1000 [00:10<01:30, 10.00it/s, v_num=0, loss=2.3, gpu_mem=18.2]\nEpoch 0:  20%|██        | 200/1000 [00:20<01:20, 10.00it/s, v_num=0, loss=2.3, gpu_mem=18.5]",
        "100/1000 [00:10<01:30, 9.9it/s, mem=18.2G]\n200/1000 [00:20<01:30, 9.9it/s, mem=18.5G]",
        "step: 100  18.2 GB\nstep: 200  18.5 GB",
        "Step 100, Allocated: 18.2/24.0 GB\nStep 200, Allocated: 18.5/24.0 GB",
        "Step=100 max_mem: 18637M\nStep=200 max_mem: 18944M",
        "step 100: torch.cuda.memory_allocated() = 19542101197\nstep 200: torch.cuda.memory_allocated() = 19864223744",
    ] {
        assert_eq!(first(text), [(100, 18.2), (200, 18.5)], "{text}");
    }
}

#[test]
fn readings_without_steps_are_counted() {
    let text = "{'loss': 2.3, 'epoch': 0.1, 'memory(GiB)': 18.2}\n{'loss': 2.2, 'epoch': 0.2, 'memory(GiB)': 18.5}";
    assert_eq!(first(text), [(1, 18.2), (2, 18.5)]);
}

#[test]
fn keys_are_kept_apart_and_totals_are_no_readings() {
    let text = "step 1 MA 18.0 GB Max_MA 19.0 GB\nstep 2 MA 18.1 GB Max_MA 19.0 GB";
    let log = log(text);
    assert_eq!(
        log.series.iter().map(|s| s.key.as_str()).collect::<Vec<_>>(),
        ["ma", "max_ma"]
    );
    let log = super::tests::log("step 1 mem 18.0/24.0 GB\nstep 2 mem 18.1/24.0 GB");
    assert_eq!((log.series.len(), log.total), (1, Some(Bytes::gib(24))));
}

#[test]
fn what_stays_in_use_is_a_reading() {
    let text = "INFO [gpu_worker.py:117] Sleep mode freed 41.30 GiB memory, 5.10 GiB memory is still in use.\n\
                INFO [gpu_worker.py:117] Sleep mode freed 38.90 GiB memory, 7.80 GiB memory is still in use.";
    assert_eq!(first(text), [(1, 5.1), (2, 7.8)]);
}

#[test]
fn lengths_stand_beside_memory() {
    let log = log("step 1 seq_len=512 mem=18.0GB\nstep 2 seq_len=4096 mem=30.0GB");
    assert_eq!(log.series[0].points[1].length, Some(4096));
}

#[test]
fn what_has_no_memory_is_no_log() {
    for text in [
        "step 100 loss 2.3\nstep 200 loss 2.2",
        "Downloading 4.5GB at 20MB/s\nDownloading 4.6GB at 21MB/s",
        "CUDA out of memory. Tried to allocate 2.50 GiB",
        "",
        "10 20 30 GB/s",
        // Lines of source, issues, shares, limits and changes are no readings.
        "step 1 [gpu_worker.py:81] memory\nstep 2 [gpu_worker.py:81] memory",
        "memory leak, see pytorch#147851\nmemory leak, see pytorch#147851",
        "gpu memory utilization 0.6\ngpu memory utilization 0.6",
        "memory grows by 2 MiB\nmemory grows by 2 MiB",
        "step 1: needs memory of 24 GiB\nstep 2: needs memory of 24 GiB",
    ] {
        assert_eq!(find(text), None, "{text}");
    }
}

/// Readings that a framework, a callback and a person's prints write under different keys form one series.
#[test]
fn two_wordings_of_one_quantity_are_one_series() {
    let text = "Step 100: GPU memory 18.2 GB\nstep 200 | loss 2.3 | mem 18.5GB\nStep 300: GPU memory 18.9 GB\n\
                {'loss': 2.2, 'memory(GiB)': 19.4, 'step': 400}\nStep 500, Allocated: 20.1/24.0 GB";
    let log = log(text);
    assert_eq!(log.series.len(), 1, "{log:?}");
    assert_eq!(
        first(text),
        [(100, 18.2), (200, 18.5), (300, 18.9), (400, 19.4), (500, 20.1)]
    );
    // Readings without steps are numbered again after the merge.
    assert_eq!(
        first("mem 18.2GB\nGPU memory: 18.5 GB\nmem 18.9GB"),
        [(1, 18.2), (2, 18.5), (3, 18.9)]
    );
}

#[test]
fn two_quantities_are_two_series() {
    for text in [
        // Both keys occur in one line.
        "step 1 mem 18.0GB gpu memory 19.0 GB\nstep 2 mem 18.1GB gpu memory 19.1 GB",
        // Both keys occur at one step.
        "step 1 mem 18.0GB\nstep 1 gpu memory 19.0 GB\nstep 2 mem 18.1GB\nstep 2 gpu memory 19.0 GB",
        // One is a peak and the other current memory; or they cover different parts of the run.
        "step 1 mem 18.0GB\nstep 2 mem 18.0GB\nstep 3 max mem 19.0GB\nstep 4 max mem 19.0GB",
        "step 1 mem 18.0GB\nstep 2 eval mem 9.0GB\nstep 3 mem 18.0GB\nstep 4 eval mem 9.0GB",
        // One reading precedes the first step.
        "model loaded: memory 5.0 GB\nstep 1 gpu mem 18.0GB\nstep 2 gpu mem 18.0GB",
    ] {
        assert_eq!(log(text).series.len(), 2, "{text}\n{:?}", log(text));
    }
}
