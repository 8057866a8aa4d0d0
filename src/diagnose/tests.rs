//! Property tests: no damaged input makes a reader panic.

use proptest::prelude::*;

use super::{Context, diagnose, read, words};
use vramscope_engine::units::Bytes;

/// One text of each kind.
const TEXTS: [&str; 8] = [
    "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 22.00 GiB allowed; 21.50 GiB reserved in total by PyTorch)",
    "Traceback (most recent call last):\n in forward\nCUDA out of memory. Tried to allocate 25.96 GiB. GPU 4 has a total capacity of 79.18 GiB of which 23.04 GiB is free. Process 7478 has 4.08 GiB memory in use. Including non-PyTorch memory, this process has 52.02 GiB memory in use. Of the allocated memory 45.89 GiB is allocated by PyTorch, with 1.38 GiB allocated in private pools (e.g., CUDA Graphs), and 3.01 GiB is reserved by PyTorch but unallocated.",
    "|  PyTorch CUDA memory summary, device ID 1  |\n|  CUDA OOMs: 1  |  cudaMalloc retries: 3  |\n| Metric | Cur Usage | Peak Usage |\n| Allocated memory | 21964 MiB | 22016 MiB |\n| GPU reserved memory | 31000 MiB | 31000 MiB |\n{'allocated_bytes.all.current': 900, 'reserved_bytes.all.current': 1000}",
    "| NVIDIA-SMI 550.54.15 |\n|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |\n| N/A   41C    P0            275W /  400W |   78123MiB /  81920MiB |     97%      Default |\n|    0   N/A  N/A    203841      C   python train.py    77000MiB |",
    "timestamp, index, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n2024/01/01 00:00:00.000, 0, 21000 MiB, 24576 MiB, 87 %\n2024/01/01 00:00:01.000, 0, 23000 MiB, 24576 MiB, 91 %",
    "step 1 seq_len=512 mem 18.2/24.0 GB\nstep 2 seq_len=4096 mem 18.5/24.0 GB\nstep 3 mem 18.9 GB\n 40%|██  | 4/10 [00:10, mem=20.4G]\n{'memory(GiB)': 21.9, 'global_step': 5}",
    "Name    Self CPU %    Self CPU    Self CUDA    Self CUDA %    Self CUDA Mem\naten::mm    20.00%    200.000ms    400.000ms    50.00%    1.50 Gb\nenumerate(DataLoader)#_M    40.00%    400.000ms    0.000us    0.00%    0 b\nSelf CPU time total: 1.000s\nSelf CUDA time total: 800.000ms",
    "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"nccl\", \"ts\": 1, \"dur\": 2}, {\"ph\": \"i\", \"name\": \"[memory]\", \"ts\": 61, \"args\": {\"Device Type\": 1, \"Total Allocated\": 4096}}]}",
];

/// Reads, diagnoses and phrases an input; none of it may panic.
fn feed(bytes: &[u8]) {
    let Ok(pieces) = read(bytes) else { return };
    let context = Context {
        capacity: Some(Bytes::gib(24)),
        ..Context::default()
    };
    for finding in diagnose(&pieces, &context) {
        assert!(!words::title(&finding.cause, finding.confidence).key.is_empty());
        words::evidence(&finding.cause);
    }
}

#[test]
fn every_text_is_understood() {
    for text in TEXTS {
        assert!(read(text.as_bytes()).is_ok(), "{text}");
    }
}

proptest! {
    #[test]
    fn damaged_texts_are_read_or_refused(
        a in 0..TEXTS.len(), b in 0..TEXTS.len(), cut in any::<prop::sample::Index>(), join in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
    ) {
        let (first, second) = (TEXTS[a].as_bytes(), TEXTS[b].as_bytes());
        let mut bytes = [&first[..cut.index(first.len())], &second[join.index(second.len())..]].concat();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        feed(&bytes);
    }

    #[test]
    fn numbers_of_any_size_are_read_or_refused(text in 0..TEXTS.len(), number in "[0-9]{1,25}(\\.[0-9]{1,25})?", at in any::<prop::sample::Index>()) {
        let whole = TEXTS[text];
        let digits: Vec<usize> = whole.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
        let at = digits[at.index(digits.len())];
        feed(format!("{}{number}{}", &whole[..at], &whole[at + 1..]).as_bytes());
    }
}
