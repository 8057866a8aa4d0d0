//! GPU memory outside PyTorch's allocator, as named terms with ranges.
//!
//! Measured on H200 (PyTorch 2.11, CUDA 13.0), one process at a time, as device total − free −
//! reserved: 750.8 MiB after GPT-2 in fp32, 766.8 MiB after GPT-2 under fp16 autocast, and 818.8 MiB
//! after 112 different cases in one process. It never falls, rises by 2 MiB at a time, and does not
//! follow batch, length or model size: kernels stay loaded from their first use on. A fresh process
//! that trains one model is near the lower end.

use super::{Outside, OutsideTerm};
use crate::device::{Device, Vendor};
use crate::units::Bytes;

/// Returns the terms of a process that trains on `gpus` devices of this kind, one process each.
///
/// Empty for devices that CUDA does not drive: nothing is known of them, and nothing is guessed.
pub fn terms(device: &Device, gpus: u64) -> Vec<OutsideTerm> {
    if device.vendor != Vendor::Nvidia {
        return Vec::new();
    }
    let mut terms: Vec<_> = context(device).into_iter().collect();
    terms.push(kernels());
    if device.kind.may_drive_display() {
        terms.push(display());
    }
    if gpus > 1 {
        terms.push(nccl());
    }
    terms
}

/// Sum of the [`terms`] of one process on one device.
pub fn total(device: &Device) -> Bytes {
    terms(device, 1).iter().map(|term| term.bytes).sum()
}

/// Bytes of the bare CUDA context: two KiB for each thread that the card can hold, as four cards show (`tests`). The
/// driver keeps stacks and state for every resident thread.
fn context(device: &Device) -> Option<OutsideTerm> {
    let per_multiprocessor = device.compute_capability?.max_threads_per_multiprocessor();
    let threads = device.multiprocessors? * per_multiprocessor;
    let bytes = Bytes::new(threads * 2048);
    Some(OutsideTerm {
        name: Outside::CudaContext,
        bytes,
        range: [bytes, bytes + Bytes::mib(10)],
        source: "2 KiB for each resident thread (multiprocessors × threads): RTX 4060 Ti and RTX PRO 6000 in \
                 github.com/ggml-org/llama.cpp/pull/23604, RTX 6000 Ada in \
                 github.com/unslothai/unsloth-zoo/pull/1053, RTX 3090 in github.com/invoke-ai/InvokeAI/issues/9413"
            .into(),
    })
}

/// Code of the kernels of PyTorch, cuBLAS and cuDNN, loaded lazily at first use (CUDA 11.7 and newer).
fn kernels() -> OutsideTerm {
    OutsideTerm {
        name: Outside::CudaKernels,
        bytes: Bytes::mib(243),
        range: [Bytes::mib(223), Bytes::mib(291)],
        source:
            "measured on H200 with PyTorch 2.11 and CUDA 13.0, less the bare context: one model in a fresh process, \
                 to 112 different cases in one process; CUDA before 11.7 loads every kernel and takes over 1 GB \
                 (github.com/pytorch/pytorch/issues/107667)"
                .into(),
    }
}

/// Windows, browsers and the desktop, if the card drives a display.
fn display() -> OutsideTerm {
    OutsideTerm {
        name: Outside::Display,
        bytes: Bytes::ZERO,
        range: [Bytes::ZERO, Bytes::gib(1)],
        source: "depends on what is open: run nvidia-smi before training and take what it shows as used".into(),
    }
}

/// NCCL's communicators and buffers.
fn nccl() -> OutsideTerm {
    OutsideTerm {
        name: Outside::Nccl,
        bytes: Bytes::mib(850),
        range: [Bytes::mib(842), Bytes::mib(884)],
        source:
            "measured on 2 H200 over NVLink with NCCL 2.28.9 (DDP, ZeRO-1, FSDP2), less the same process on one GPU; \
                 grows with the number of GPUs and communicators"
                .into(),
    }
}

/// What vLLM takes for itself in the training process: this share of the card's memory, whatever else is on it.
/// A share outside 0 to 1 is taken as the nearest of them.
pub fn vllm(device: &Device, share: f64) -> OutsideTerm {
    let bytes = Bytes::new((device.usable().get() as f64 * share.clamp(0.0, 1.0)) as u64);
    OutsideTerm {
        name: Outside::Vllm,
        bytes,
        range: [bytes; 2],
        source: "gpu_memory_utilization of the card: vLLM fills what its weights and activations leave of it with its \
                 cache of keys and values (`determine_available_memory` in vllm/v1/worker/gpu_worker.py)"
            .into(),
    }
}

/// Bytes that PyTorch's allocator can use on a card that trains together with `gpus` of its kind.
pub fn for_allocator(card: &Device, gpus: u64) -> Bytes {
    let outside = terms(card, gpus).iter().map(|term| term.bytes).sum();
    card.usable().saturating_sub(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(name: &str, gpus: u64) -> [Bytes; 3] {
        let terms = terms(Device::by_name(name).unwrap(), gpus);
        let sum = |of: fn(&OutsideTerm) -> Bytes| terms.iter().map(of).sum();
        [sum(|t| t.range[0]), sum(|t| t.bytes), sum(|t| t.range[1])]
    }

    #[test]
    fn bare_contexts_are_as_seen() {
        for (name, seen_mib) in [
            ("RTX 4060 Ti", 107),
            ("RTX 3090", 256),
            ("RTX 6000 Ada", 426),
            ("RTX PRO 6000 Blackwell", 555),
        ] {
            let term = context(Device::by_name(name).unwrap()).unwrap();
            let miss = term.bytes.get().abs_diff(Bytes::mib(seen_mib).get());
            assert!(
                miss <= Bytes::mib(10).get(),
                "{name}: {} against {seen_mib} MiB",
                term.bytes
            );
        }
    }

    #[test]
    fn the_measured_extremes_lie_in_the_range() {
        let [low, expected, high] = total("H200", 1);
        let [first, last] = [787_283_968, 858_587_136].map(Bytes::new);
        assert!(low <= first + Bytes::mib(1) && first <= expected && expected <= last && last <= high + Bytes::mib(10));
    }

    #[test]
    fn two_gpus_add_communication() {
        let [low, _, high] = total("H200", 2);
        let measured = [1_691_222_016, 1_735_262_208].map(Bytes::new);
        assert!(low <= measured[0] && measured[1] <= high);
    }

    #[test]
    fn other_vendors_are_not_guessed() {
        assert!(terms(Device::by_name("MI300X").unwrap(), 1).is_empty());
    }
}
