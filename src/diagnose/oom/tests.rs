//! Tests of reading out-of-memory messages.

use super::*;
use crate::{Evidence, Piece};
use vramscope_engine::units::Bytes;

fn all(text: &str) -> Vec<OomMessage> {
    let message = |piece: Piece| match piece.evidence {
        Evidence::Oom(message) => message,
        other => panic!("{other:?}"),
    };
    find(text).into_iter().map(message).collect()
}

fn one(text: &str) -> OomMessage {
    let mut all = all(text);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    all.remove(0)
}

/// The amount in MiB, rounded as in the messages.
fn mib(amount: Option<Amount>) -> Option<u64> {
    amount.map(|amount| (amount.bytes.get() + (1 << 19)) >> 20)
}

/// Messages of course rows 9.2 and L.oom, and one in each wording that PyTorch has used.
const V1_0: &str = "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 51.00 MiB cached)";
const V1_3: &str = "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB cached)";
const V1_4: &str = "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)";
const V1_8: &str = "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 22.00 GiB allowed; 21.50 GiB reserved in total by PyTorch)";
const V1_11: &str = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF";
const V2_1: &str = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacty of 23.69 GiB of which 1.89 GiB is free. Including non-PyTorch memory, this process has 21.80 GiB memory in use. Of the allocated memory 21.45 GiB is allocated by PyTorch, and 51.20 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF";
const V2_6: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 25.96 GiB. GPU 4 has a total capacity of 79.18 GiB of which 23.04 GiB is free. Process 7478 has 4.08 GiB memory in use. Including non-PyTorch memory, this process has 52.02 GiB memory in use. 70.00 GiB allowed; Of the allocated memory 45.89 GiB is allocated by PyTorch, with 1.38 GiB allocated in private pools (e.g., CUDA Graphs), and 3.01 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";

#[test]
fn every_wording_of_one_error_says_the_same() {
    for text in [V1_3, V1_4, V1_8, V1_11, V2_1] {
        let message = one(text);
        assert_eq!(message.asker, Asker::Allocator(Backend::Cuda));
        assert_eq!(message.device, Some(0));
        assert_eq!(mib(message.request), Some(2560), "{text}");
        assert_eq!(mib(message.total), Some(24259), "{text}");
        assert_eq!(mib(message.free), Some(1935), "{text}");
        assert_eq!(mib(message.allocated), Some(21965), "{text}");
        assert_eq!(mib(message.reserved_in_all()), Some(22016), "{text}");
        assert!(
            mib(message.unallocated_in_all()).is_some_and(|mib| (50..=52).contains(&mib)),
            "{text}"
        );
    }
    // PyTorch 1.0 reports as cached only the memory that no tensor holds.
    assert_eq!(mib(one(V1_0).unallocated_in_all()), Some(51));
    assert_eq!(mib(one(V1_0).reserved_in_all()), Some(22016));
    assert_eq!(mib(one(V1_8).allowed), Some(22528));
    assert_eq!(mib(one(V2_1).own), Some(22323));
}

#[test]
fn processes_pools_and_limits_are_read() {
    let message = one(V2_6);
    assert_eq!(message.device, Some(4));
    assert_eq!(message.others.len(), 1);
    assert_eq!(
        (message.others[0].pid, mib(Some(message.others[0].holds))),
        (7478, Some(4178))
    );
    assert_eq!(
        (mib(message.private_pools), mib(message.allowed)),
        (Some(1413), Some(71680))
    );
    assert_eq!((mib(message.own), mib(message.unallocated)), (Some(53268), Some(3082)));
}

/// In a container the driver does not report the memory of processes.
#[test]
fn what_no_card_holds_is_left_out() {
    let text = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 15.57 GiB of which 23.06 MiB is free. Process 1 has 17179869184.00 GiB memory in use. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. Of the allocated memory 413.55 MiB is allocated by PyTorch, and 12.45 MiB is reserved by PyTorch but unallocated.";
    let message = one(text);
    assert!(message.others.is_empty() && message.own.is_none());
    assert_eq!(mib(message.allocated), Some(414));
}

#[test]
fn other_backends_and_libraries_are_told_apart() {
    let cases = [
        (
            "RuntimeError: HIP out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.98 GiB of which 100.00 MiB is free.",
            Asker::Allocator(Backend::Hip),
        ),
        (
            "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 15.59 GiB. Of the allocated memory 12.99 GiB is allocated by PyTorch, and 1.03 GiB is reserved by PyTorch but unallocated.",
            Asker::Allocator(Backend::Xpu),
        ),
        (
            "RuntimeError: MPS backend out of memory (MPS allocated: 17.36 GB, other allocations: 613.56 MB, max allowed: 18.13 GB). Tried to allocate 192.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
            Asker::Allocator(Backend::Mps),
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            Asker::Cublas,
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", Asker::Cudnn),
        (
            "node0:123:456 [0] include/alloc.h:102 NCCL WARN Cuda failure 2 'out of memory'",
            Asker::Nccl,
        ),
        (
            "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
            Asker::Driver(Backend::Cuda),
        ),
        (
            "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58",
            Asker::Driver(Backend::Cuda),
        ),
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 67108864 bytes. Error code 12 (Cannot allocate memory)",
            Asker::Host,
        ),
    ];
    for (text, asker) in cases {
        assert_eq!(one(text).asker, asker, "{text}");
    }
    let mps = one(cases[2].0);
    assert_eq!(
        (mib(mps.request), mib(mps.allowed), mib(mps.allocated)),
        (Some(192), Some(18565), Some(17777))
    );
    assert_eq!(one(cases[8].0).request.map(|a| a.bytes), Some(Bytes::mib(64)));
}

/// Mail programs and terminals break lines; launchers prefix each line with a rank.
#[test]
fn broken_lines_are_read() {
    let broken = V2_1.replace(' ', "\n   ");
    assert_eq!(
        OomMessage {
            site: None,
            ..one(&broken)
        },
        one(V2_1)
    );
}

#[test]
fn the_same_error_of_several_ranks_counts_once() {
    let text = format!(
        "[rank0]: {V1_4}\n[rank1]: {V1_4}\n{V2_6}\n{}",
        V1_4.split('.').next().expect("a head")
    );
    let all = all(&text);
    assert_eq!(all.iter().map(|message| message.times).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_traceback_tells_where() {
    let with = |frames: &str| one(&format!("Traceback (most recent call last):\n{frames}\n{V1_4}")).site;
    let cases = [
        (
            "  File \"train.py\", line 9, in main\n    optimizer.step()\n  File \"/x/torch/optim/adam.py\", line 178, in _init_group\n    state[\"exp_avg\"] = torch.zeros_like(",
            Site::OptimizerStates,
        ),
        (
            "  File \"/x/torch/optim/adamw.py\", line 600, in _multi_tensor_adamw\n    torch._foreach_sqrt(",
            Site::Optimizer,
        ),
        (
            "  File \"train.py\", line 9, in main\n    loss.backward()\n  File \"/x/torch/autograd/__init__.py\", line 347, in backward",
            Site::Backward,
        ),
        (
            "  File \"/x/torch/nn/modules/module.py\", line 1, in _call_impl\n  File \"/x/transformers/loss/loss_utils.py\", line 40, in fixed_cross_entropy\n    loss = nn.functional.cross_entropy(",
            Site::Loss,
        ),
        (
            "  File \"/x/transformers/models/llama/modeling_llama.py\", line 200, in eager_attention_forward\n    attn_weights = nn.functional.softmax(",
            Site::Attention,
        ),
        (
            "  File \"/x/torch/nn/modules/module.py\", line 1, in _apply\n    param_applied = fn(param)",
            Site::Load,
        ),
        (
            "  File \"/x/model.py\", line 1, in forward\n    return self.mlp(x)",
            Site::Forward,
        ),
    ];
    for (frames, site) in cases {
        assert_eq!(with(frames), Some(site), "{frames}");
    }
    assert_eq!(one(V1_4).site, None);
}

#[test]
fn other_texts_hold_no_error() {
    for text in [
        "",
        "out of memory",
        "CUDA out",
        "Tried to allocate 2 GiB",
        "é".repeat(3000).as_str(),
    ] {
        assert!(all(text).is_empty(), "{text}");
    }
}

#[test]
fn the_asynchronous_allocators_lines_are_read() {
    let message = one(
        "RuntimeError: Allocation on device 0 would exceed allowed memory. (out of memory)\n\
         Currently allocated     : 14.20 GiB\nRequested               : 60.00 MiB\n\
         Device limit            : 15.77 GiB\nFree (according to CUDA): 12.00 MiB\n\
         PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB\n",
    );
    assert_eq!(message.asker, Asker::Allocator(Backend::Cuda));
    assert_eq!(mib(message.allocated), Some(14541));
    assert_eq!(mib(message.request), Some(60));
    assert_eq!(mib(message.total), Some(16148));
    assert_eq!(mib(message.free), Some(12));
}
