//! The host's memory: what the process of one GPU has of it while it loads, trains and saves.

use super::super::build::{Built, build};
use super::super::trl::doubled;
use super::loads::Made;
use super::run::Run;
use crate::dtype::DType;
use crate::model::forward::Run as Forwarded;
use crate::optim::moments;
use crate::report::{HostBytes, HostUse, Occasion, OnCard, OnHost};
use crate::setup::{AdapterType, Freeze, Offload, Optimizer, Parallel, Strategy};
use crate::tape::{Kind, Tape};
use crate::units::Bytes;

/// Batches that each worker makes ahead (`prefetch_factor`).
const AHEAD: u64 = 2;

/// Least, expected and most bytes of a process once PyTorch, transformers and peft are imported and the CUDA context is made: 662 to 684 MiB beside an
/// H100 (PyTorch 2.11, CUDA 13.0, transformers 5.17). Other packages take more, such as data sets' and DeepSpeed.
const PROCESS: [Bytes; 3] = [Bytes::mib(600), Bytes::mib(700), Bytes::mib(1500)];

/// Least, expected and most bytes of a forked worker of a `DataLoader`, beside the samples of a batch: the pages that it writes to, 13 MiB
/// where it was measured, and those of its data set, which copies what Python only reads.
const WORKER: [Bytes; 3] = [Bytes::mib(10), Bytes::mib(16), Bytes::mib(600)];

/// Memory that glibc keeps once it is freed: blocks up to this size come from its heap after the first one
/// (`DEFAULT_MMAP_THRESHOLD_MAX`).
const HEAP: Bytes = Bytes::mib(32);

/// Uses of the host's memory, those of no bytes left out. `card` says how the model can be loaded, the run's own way first.
pub(super) fn host(run: &Run<'_>, card: &[OnCard]) -> Vec<OnHost> {
    let loading = card.first().map(|way| way.host).unwrap_or_default();
    let gathered = card.iter().find(|line| line.occasion == Occasion::Gather);
    let trained = Trained::of(run);
    let batch = batch(run);
    let uses = [
        (HostUse::Process, between(PROCESS, 1)),
        (HostUse::Loading, loading),
        (HostUse::Pinned, pinned(&batch, run.beside.workers)),
        (HostUse::Workers, workers(&batch, run.beside.workers)),
        (HostUse::Offloaded, offloaded(run, &trained)),
        (HostUse::Paged, paged(run.beside.paged)),
        (
            HostUse::SavedModel,
            gathered.map_or_else(|| HostBytes::exactly(saved(run, &trained)), |line| line.host),
        ),
        (HostUse::SavedStates, one_by_one(saved_states(run, &trained))),
    ];
    let is_any = |bytes: &HostBytes| bytes.range[1] > Bytes::ZERO || bytes.mapped > Bytes::ZERO;
    uses.into_iter()
        .filter(|(_, bytes)| is_any(bytes))
        .map(|(what, bytes)| OnHost {
            what,
            stage: what.stage(),
            bytes,
        })
        .collect()
}

fn between([least, expected, most]: [Bytes; 3], times: u64) -> HostBytes {
    let of = |bytes: Bytes| Bytes::new(bytes.get() * times);
    HostBytes {
        own: of(expected),
        range: [of(least), of(most)],
        mapped: Bytes::ZERO,
    }
}

/// Trained parameters.
struct Trained {
    elements: u64,
    /// Bytes of all.
    bytes: u64,
    /// Elements of all parameters.
    all: u64,
    largest: u64,
}

impl Trained {
    fn of(run: &Run<'_>) -> Self {
        let tape = Tape::new(run.gpu);
        let Built { params, .. } = build(&tape, run.model, &run.plain());
        let trained = || params.iter().filter(|param| param.requires_grad());
        Self {
            elements: trained().map(|param| param.numel()).sum(),
            bytes: trained().map(|param| param.numel() * param.dtype().width()).sum(),
            all: params.iter().map(super::super::build::elements).sum(),
            largest: trained().map(|param| param.numel()).max().unwrap_or_default(),
        }
    }
}

/// Bytes of each tensor of a batch as the host has it: pixel values in fp32.
fn batch(run: &Run<'_>) -> Vec<u64> {
    let setup = doubled(run.plain());
    let tape = Tape::new(run.gpu);
    tape.set_padded(setup.is_padded());
    let Built { forward, .. } = build(&tape, run.model, &setup);
    let from = tape.mark();
    drop(forward.batch(&tape, &Forwarded::new(run.model, &setup)));
    tape.read_log(|log| {
        let made = log.events[from..].iter().filter(|event| event.is_alloc());
        let mut seen: Vec<&'static str> = Vec::new();
        let mut bytes = Vec::new();
        for made in made.map(|event| log.allocations[event.storage() as usize]) {
            // Of tensors that are cast on the card, the first is the host's.
            if made.kind == Kind::Input && !seen.contains(&made.name) {
                seen.push(made.name);
                bytes.push(made.bytes);
            }
        }
        bytes
    })
}

/// Batches in pinned memory: with workers, those that they are ahead, then the next one and the last; each tensor in a power
/// of two of bytes (`CachingHostAllocator`).
fn pinned(batch: &[u64], workers: u64) -> HostBytes {
    let one: u64 = batch.iter().map(|bytes| bytes.next_power_of_two()).sum();
    let most = Bytes::new(one * (2 + AHEAD * workers));
    HostBytes {
        own: most,
        range: [Bytes::new(one), most],
        mapped: Bytes::ZERO,
    }
}

/// Workers with the samples of a batch each, and the batches that they hand over in shared memory.
fn workers(batch: &[u64], workers: u64) -> HostBytes {
    let own = between(WORKER, workers);
    let samples = Bytes::new(batch.iter().sum::<u64>() * workers);
    let shared = Bytes::new(samples.get() * AHEAD);
    HostBytes {
        own: own.own + samples + shared,
        range: [own.range[0] + samples, own.range[1] + samples + shared],
        mapped: Bytes::ZERO,
    }
}

/// Paged states lie on the host as far as the card has no room for them.
fn paged(bytes: Bytes) -> HostBytes {
    HostBytes {
        own: bytes,
        range: [Bytes::ZERO, bytes],
        mapped: Bytes::ZERO,
    }
}

/// Bytes that the host keeps for one of several GPUs: of FSDP2 shards, gradients and states (`CPUOffloadPolicy`); of DeepSpeed
/// weights, gradients and states in fp32, 16-bit copies, and of stage 3 parameters. Pinned memory comes in powers of two, so
/// that it can take up to twice as much.
fn offloaded(run: &Run<'_>, trained: &Trained) -> HostBytes {
    let Some(Parallel {
        strategy,
        world,
        offload,
        ..
    }) = run.beside.parallel
    else {
        return HostBytes::default();
    };
    let part = trained.elements.div_ceil(*world);
    let moments = moments(run.setup.optim);
    let bytes = match (offload, strategy) {
        (Offload::None, _) => 0,
        (Offload::Shards, _) => {
            let width = run.setup.precision.weights().width();
            trained.all.div_ceil(*world) * width + part * width * (1 + moments)
        }
        (Offload::Optimizer | Offload::OptimizerAndParameters, strategy) => {
            let parameters = match (offload, strategy) {
                (Offload::OptimizerAndParameters, Strategy::Deepspeed3) => 2 * trained.all.div_ceil(*world),
                _ => 0,
            };
            part * (4 + 4 + 4 * moments + 2) + parameters
        }
    };
    HostBytes {
        own: Bytes::new(bytes),
        range: [Bytes::new(bytes), Bytes::new(2 * bytes)],
        mapped: Bytes::ZERO,
    }
}

/// Bytes that `save_pretrained` copies to the host before it writes them: all tensors of the model that lie on the card, of
/// adapted models the adapters.
fn saved(run: &Run<'_>, trained: &Trained) -> Bytes {
    if run.adapts() {
        return Bytes::new(trained.bytes);
    }
    let held = Made::new(run, run.setup.precision.weights()).held();
    held.iter()
        .filter(|x| x.is_parameter)
        .map(|x| Bytes::new(x.bytes()))
        .sum()
}

/// Tensors that are copied one after the other, of which the largest has these bytes: what is freed may stay in the heap.
fn one_by_one(largest: Bytes) -> HostBytes {
    if largest == Bytes::ZERO {
        return HostBytes::default();
    }
    HostBytes {
        own: largest + largest.min(HEAP),
        range: [largest, largest + HEAP + HEAP],
        mapped: Bytes::ZERO,
    }
}

/// Bytes that `torch.save` of the optimizer copies to the host at once: its largest tensor.
fn saved_states(run: &Run<'_>, trained: &Trained) -> Bytes {
    if moments(run.setup.optim) == 0 {
        return Bytes::ZERO;
    }
    let deepspeed = run
        .beside
        .parallel
        .filter(|parallel| parallel.strategy.zero_stage().is_some());
    if let Some(parallel) = deepspeed {
        return Bytes::new(4 * trained.elements.div_ceil(parallel.world));
    }
    let width = match (run.setup.optim, run.setup.freeze, run.setup.lora_dtype) {
        (Optimizer::AdamwTorchao4bit, ..) => return Bytes::new(trained.largest / 2),
        (
            Optimizer::Adamw8bit
            | Optimizer::PagedAdamw8bit
            | Optimizer::Lion8bit
            | Optimizer::PagedLion8bit
            | Optimizer::AdamwTorchao8bit
            | Optimizer::AdamwTorchaoFp8,
            ..,
        ) => 1,
        (Optimizer::PagedAdamw | Optimizer::Lion | Optimizer::PagedLion, ..) => 4,
        (_, Freeze::Lora | Freeze::Qlora, AdapterType::Fp32) => DType::F32.width(),
        (_, Freeze::Lora | Freeze::Qlora, AdapterType::Bf16) => DType::Bf16.width(),
        _ => run.setup.precision.weights().width(),
    };
    Bytes::new(trained.largest * width)
}
