//! Valid inputs of each reader, as seeds for fuzzing.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

use crate::mutate::Write;
use crate::pickled::Pickler;
use crate::{configured, launched};

/// Names of the readers.
pub const READERS: [&str; 19] = [
    CRASHES,
    "oom",
    "summary",
    "stats",
    "smi-table",
    "smi-csv",
    "log",
    "table",
    "trace",
    "snapshot",
    "pickle",
    RECORDINGS,
    RUNS,
    "launch-shell",
    "launch-python",
    "launch-notebook",
    "launch-yaml",
    "launch-json",
    "launch-toml",
];

/// Name of whole crashes: the examples of all kinds of evidence, which the mutator cuts and mixes.
pub const CRASHES: &str = "crashes";

/// Name of recordings of training steps, and of those of all sizes, as a fuzz target.
pub const RECORDINGS: &str = "recordings";

/// Name of the simulation as a fuzz target.
pub const RUNS: &str = "configurations";

const OOM: [&str; 5] = [
    "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)",
    "Traceback (most recent call last):\n  File \"/x/site-packages/torch/optim/adam.py\", line 178, in _init_group\n    state = torch.zeros_like(\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 25.96 GiB. GPU 4 has a total capacity of 79.18 GiB of which 23.04 GiB is free. Process 7478 has 4.08 GiB memory in use. Including non-PyTorch memory, this process has 52.02 GiB memory in use. 70.00 GiB allowed; Of the allocated memory 45.89 GiB is allocated by PyTorch, with 1.38 GiB allocated in private pools (e.g., CUDA Graphs), and 3.01 GiB is reserved by PyTorch but unallocated.",
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.36 GB, other allocations: 613.56 MB, max allowed: 18.13 GB). Tried to allocate 192.00 MB on private pool.",
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.92 GiB total capacity; 8.62 GiB already allocated; 1.39 GiB free; 53.12 MiB cached)",
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 67108864 bytes. CUBLAS_STATUS_ALLOC_FAILED NCCL WARN Cuda failure 2 'out of memory'",
];

const SUMMARY: &str = "|===========================================================================|\n|                  PyTorch CUDA memory summary, device ID 1                 |\n|            CUDA OOMs: 1            |        cudaMalloc retries: 3         |\n|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n| Allocated memory      |  21964 MiB |  22016 MiB | 176121 MiB | 154157 MiB |\n|       from large pool |  21900 MiB |  21950 MiB | 176000 MiB | 154100 MiB |\n| Active memory         |  21964 MiB |  22016 MiB | 176121 MiB | 154157 MiB |\n| GPU reserved memory   |  31000 MiB |  31000 MiB |  31000 MiB |      0 B   |\n| Non-releasable memory |   8024 MiB |   9000 MiB | 100000 MiB |  91976 MiB |\n";

const STATS: &str = "OrderedDict([('active_bytes.all.current', 5), ('allocated_bytes.all.current', 2013018112), ('allocated_bytes.all.peak', 2013018113), ('num_alloc_retries', 2), ('num_ooms', 1), ('reserved_bytes.all.current', 2227175424)])\n{\"allocated_bytes.all.current\": 900, \"reserved_bytes.all.current\": 1000}";

const SMI: &str = "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |\n| N/A   41C    P0            275W /  400W |   78123MiB /  81920MiB |     97%      Default |\n|    0   N/A  N/A    203841      C   python train.py                             40000MiB |\n|    0   N/A  N/A      1873      G   /usr/lib/xorg/Xorg                          38000MiB |\n";

const CSV: [&str; 2] = [
    "timestamp, index, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n2024/01/01 00:00:00.000, 0, 21000 MiB, 24576 MiB, 87 %\n2024/01/01 00:00:01.000, 0, 23000 MiB, 24576 MiB, 31 %\n2024/01/01 00:00:02.000, 1, 23500 MiB, 24576 MiB, 21 %\n2024/01/01 00:00:03.000, 0, 24000 MiB, 24576 MiB, 41 %\n",
    "2024/01/01 00:00:00.000, 87 %, 21000 MiB, 24576 MiB\ntime,memory_used_mb,memory_total_mb,gpu_util\n0,21000,24576,87\n",
];

const LOG: [&str; 5] = [
    "Step 100: GPU memory 18.2 GB\nStep 200: GPU memory 18.5 GB\nStep 300: GPU memory 18.9 GB\nStep 400: GPU memory 19.4 GB\nStep 500: GPU memory 20.1 GB\nStep 600: GPU memory 24.2 GB\n",
    "{'loss': 2.31, 'memory(GiB)': 18.2, 'global_step': 100}\n{'loss': 2.3, 'memory(GiB)': 18.5, 'global_step': 200}\n",
    "Epoch 0:  10%|█         | 100/1000 [00:10<01:30, 10.00it/s, v_num=0, loss=2.3, gpu_mem=18.2]\n 20%|██ | 200/1000 [00:20<01:20, mem=18.5G]\n",
    "Step 100: GPU memory 18.2 GB\nstep 200 | loss 2.3 | mem 18.5GB\n{'memory(GiB)': 19.4, 'step': 400}\nStep 500, Allocated: 20.1/24.0 GB\n",
    "step 1 seq_len=512 MA 18.0 GB Max_MA 19.0 GB\nstep 2 seq_len=4096 MA 30.1/40.0 GB Max_MA 31.0 GB\n",
];

const TABLE: [&str; 2] = [
    "-----  -----  -----\n   Name    Self CPU %      Self CPU     Self CUDA   Self CUDA %    CUDA Mem    Self CUDA Mem    # of Calls\n-----  -----\naten::mm        20.00%     200.000ms        400.000ms        50.00%     1.50 Gb    1.50 Gb           250\nenumerate(DataLoader)#_M        40.00%     400.000ms       0.000us         0.00%       0 b    -512 b           100\nSelf CPU time total: 1.000s\nSelf CUDA time total: 800.000ms\n",
    "| Name | CPU % | CUDA % |\n|---|---|---|\n| aten::matmul | 45.2% | 52.1% |\n| DataLoader | 25.1% | 0.0% |\nName  CPU %  CUDA %\nnccl:all_reduce 8.5 18.3\n",
];

const TRACE: &str = r#"{"schemaVersion": 1, "traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "ts": 0, "dur": 100, "args": {"x": [1, {"y": 2}]}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#8", "ts": 100, "dur": 100},
{"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_Multi", "ts": 0.0, "dur": 60.0},
{"ph": "X", "cat": "kernel", "name": "gemm mm", "ts": 60, "dur": 20, "args": {"stream": 7}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 70, "dur": 20},
{"ph": "i", "name": "[memory]", "ts": 61, "args": {"Device Type": 1, "Bytes": 1024, "Total Allocated": 4096}},
{"ph": "i", "name": "[memory]", "ts": 161, "args": {"Device Type": 1, "Bytes": 1024, "Total Allocated": 8192}}]}"#;

/// `{'a': [1, -2, 2**60], 'b': (None, True, 1.5), 'c': {}}` in protocols 0 and 4.
const PICKLES: [&[u8]; 2] = [
    b"(dp0\nVa\np1\n(lp2\nI1\naI-2\naI70000\naL1152921504606846976L\nasVb\np3\n(NI01\nF1.5\ntp4\nsVc\np5\n(dp6\ns.",
    b"\x80\x04\x95\x45\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x10\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00e\x8c\x01b\x94N\x88G?\xf8\x00\x00\x00\x00\x00\x00\x87\x94\x8c\x01c\x94}\x94u.",
];

/// Seeds of a reader, and its generator of more; `None` for an unknown reader.
pub fn of(reader: &str) -> Option<(Vec<Vec<u8>>, Option<Write>)> {
    let write: Option<Write> = match reader {
        "pickle" => Some(|random| Pickler::anything(random)),
        "snapshot" => Some(|random| Pickler::snapshot(random)),
        RUNS => Some(configured::write),
        _ => None,
    };
    Some((whole(reader)?, write))
}

fn whole(reader: &str) -> Option<Vec<Vec<u8>>> {
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| text.as_bytes().to_vec()).collect());
    match reader {
        CRASHES => Some(crashes(Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../src/diagnose/kinds"
        )))),
        "oom" => texts(&OOM),
        "summary" => texts(&[SUMMARY]),
        "stats" => texts(&[STATS]),
        "smi-table" => texts(&[SMI]),
        "smi-csv" => texts(&CSV),
        "log" => texts(&LOG),
        "table" => texts(&TABLE),
        "trace" => texts(&[TRACE]),
        "pickle" => Some(
            PICKLES
                .iter()
                .map(|pickle| pickle.to_vec())
                .chain([snapshot()])
                .collect(),
        ),
        "snapshot" => Some(vec![snapshot()]),
        RECORDINGS => Some(RECORDED.iter().map(|gzipped| unpacked(gzipped)).collect()),
        RUNS => texts(&[r#"{"config": {"model_type": "gpt2"}, "case": {"model": "x", "batch": 2, "seq": 64}}"#]),
        other => launched::file_of(other).map(launched::seeds),
    }
}

/// The examples in the files of kinds.
fn crashes(folder: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(crashes(&path));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let examples = text.split("text = '''\n").skip(1);
        found.extend(examples.filter_map(|rest| Some(rest.split_once("'''")?.0.as_bytes().to_vec())));
    }
    found
}

/// A whole snapshot of two training steps of GPT-2.
fn snapshot() -> Vec<u8> {
    unpacked(include_bytes!("../data/snapshots/gpt2-bf16.pickle.gz"))
}

/// A short recording, one of a transformer, and one of all sizes.
const RECORDED: [&[u8]; 3] = [
    include_bytes!("../data/recordings/mlp-ampbf16-adamw.vram.gz"),
    include_bytes!("../data/recordings/qwen2-4layers-bf16-b2-s256.vram.gz"),
    include_bytes!("../data/recordings/qwen2-4layers-bf16.sizes.gz"),
];

fn unpacked(gzipped: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(gzipped).read_to_end(&mut bytes).expect("gzip");
    bytes
}
