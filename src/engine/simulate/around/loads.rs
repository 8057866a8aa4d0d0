//! Ways to load a model with weights in full: moved to the card, mapped to it, cast on it, or in parts
//! (`modeling_utils.py` and `core_model_loading.py` of transformers 5.17, `partition_parameters.py` of DeepSpeed 0.19.8).

use std::collections::HashSet;

use super::super::SimulateError;
use super::super::load::load;
use super::run::{Run, stops};
use super::script::{Peaks, Script, peaks_since};
use crate::dtype::DType;
use crate::nn::{Builder, LigerPatches, Trained};
use crate::report::{HostBytes, Occasion, OnCard};
use crate::setup::{CAUSAL_CONV1D, Freeze, Offload, Parallel};
use crate::tape::{Tape, Tensor};
use crate::units::Bytes;

/// Threads that read files (`GLOBAL_WORKERS`).
const READERS: u64 = 4;

/// Models whose files have the weights of a layer's experts in one tensor (`conversion_mapping.py`); those of others are merged
/// when they are loaded.
const FUSED_IN_FILES: [&str; 5] = ["gpt_oss", "llama4", "llama4_text", "qwen3_vl_moe", "qwen3_5_moe"];

/// A tensor of a model.
pub(super) struct Held {
    pub elements: u64,
    pub dtype: DType,
    /// Path of its module.
    pub module: String,
    pub is_parameter: bool,
    /// True if the files hold it expert by expert.
    is_merged: bool,
}

impl Held {
    pub const fn bytes(&self) -> u64 {
        self.elements * self.dtype.width()
    }

    /// Bytes of it as it lies in a file whose floats are of this type; buffers are in none.
    fn in_file(&self, files: DType) -> u64 {
        match (self.is_parameter, self.dtype.is_float()) {
            (false, _) => 0,
            (true, true) => self.elements * files.width(),
            (true, false) => self.bytes(),
        }
    }
}

/// A model on a tape, with nothing frozen.
pub(super) struct Made {
    pub tape: Tape,
    params: Vec<Tensor>,
    /// True if the model's files hold fused weights of experts expert by expert.
    merges: bool,
    _forward: Box<dyn crate::model::forward::Forward>,
}

impl Made {
    /// Makes a model with weights of this type.
    pub fn new(run: &Run<'_>, dtype: DType) -> Self {
        let tape = Tape::new(run.gpu);
        let policy = Trained {
            freeze: Freeze::NONE,
            dtype,
            frozen: dtype,
            nf4: None,
            causal_conv1d: run.setup.packages.packages().contains(&CAUSAL_CONV1D),
            liger: LigerPatches::NOTHING,
        };
        let builder = Builder::new(&tape, policy);
        let forward = run.model.build(&builder);
        Self {
            tape,
            params: builder.made(),
            merges: !FUSED_IN_FILES.contains(&run.model.model_type),
            _forward: forward,
        }
    }

    /// The tensors that it has once it is made.
    pub fn held(&self) -> Vec<Held> {
        let params: HashSet<u32> = self.params.iter().filter_map(|param| param.storage().id()).collect();
        self.tape.read_log(|log| {
            let mut dropped: HashSet<u32> = HashSet::new();
            dropped.extend(log.events.iter().filter(|e| !e.is_alloc()).map(|e| e.storage()));
            let lasting = log.events.iter().filter(|e| e.is_alloc()).map(|e| e.storage());
            let lasting = lasting.filter(|id| !dropped.contains(id));
            let held = lasting.map(|id| {
                let made = log.allocations[id as usize];
                let is_fused = made.shape.len() == 3 && ["gate_up_proj", "down_proj"].contains(&made.name);
                Held {
                    elements: made.bytes / made.dtype.width(),
                    dtype: made.dtype,
                    module: log.path(made.scope),
                    is_parameter: params.contains(&id),
                    is_merged: self.merges && is_fused,
                }
            });
            held.collect()
        })
    }
}

/// Bytes of the files of a model.
pub(super) fn file_bytes(held: &[Held], files: DType) -> Bytes {
    held.iter().map(|x| Bytes::new(x.in_file(files))).sum()
}

/// `from_pretrained(…).to("cuda")`: the host has the weights first. Those in the type of the files stay in them, mapped.
pub(super) fn moved(run: &Run<'_>) -> Result<OnCard, SimulateError> {
    let weights = run.setup.precision.weights();
    let made = Made::new(run, weights);
    let held = made.held();
    let mut script = Script::default();
    for x in &held {
        script.alloc(x.bytes());
    }
    let own = copied_bytes(&held, run.beside.files, weights);
    stops(made.tape.failure())?;
    Ok(on_card(
        Occasion::LoadMoved,
        script.peaks()?,
        host(own, own, &held, run),
    ))
}

/// `from_pretrained(…, device_map="cuda")`: memory for all weights in one piece, then weight by weight. What is cast is cast
/// on the host, by several threads.
pub(super) fn mapped(run: &Run<'_>) -> Result<OnCard, SimulateError> {
    let weights = run.setup.precision.weights();
    let made = Made::new(run, weights);
    let held = made.held();
    load(&made.tape, 0, &made.params);
    stops(made.tape.failure())?;
    let largest = largest_cast(&held, run.beside.files, weights);
    let threads = Bytes::new(largest.get() * READERS);
    let host = HostBytes {
        range: [Bytes::ZERO, threads],
        ..host(largest, threads, &held, run)
    };
    let peaks = peaks_since(&made.tape, 0)?;
    let merging = merging(&held);
    let peaks = Peaks {
        allocated: peaks.allocated + merging,
        reserved: peaks.reserved + merging,
    };
    Ok(on_card(Occasion::LoadMapped, peaks, host))
}

/// `from_pretrained(…, dtype=torch.float32).to("cuda").to(torch.bfloat16)`: whole in fp32, then each tensor in turn.
pub(super) fn cast(run: &Run<'_>) -> Result<OnCard, SimulateError> {
    let made = Made::new(run, DType::F32);
    let held = made.held();
    let mut script = Script::default();
    let wide: Vec<_> = held.iter().map(|x| script.alloc(x.bytes())).collect();
    for (x, wide) in held.iter().zip(wide).filter(|(x, _)| x.dtype.is_float()) {
        script.alloc(x.elements * run.setup.precision.weights().width());
        script.free(wide);
    }
    stops(made.tape.failure())?;
    let own = copied_bytes(&held, run.beside.files, DType::F32);
    Ok(on_card(Occasion::LoadCast, script.peaks()?, host(own, own, &held, run)))
}

/// `from_pretrained` under `zero.Init`: each module's weights are cut once it is made, then gathered to be filled
/// (`_load_state_dict_into_zero3_model`). Every process maps the files.
pub(super) fn partitioned(run: &Run<'_>, parallel: &Parallel) -> Result<OnCard, SimulateError> {
    let made = Made::new(run, DType::Bf16);
    let held = made.held();
    let mut script = Script::default();
    let on_host = parallel.offload == Offload::OptimizerAndParameters;
    let threshold = parallel.zero.stage3_param_persistence_threshold;
    let mut parts = 0;
    let modules = modules(&held);
    for module in &modules {
        let whole: Vec<_> = module.iter().map(|x| script.alloc(x.bytes())).collect();
        for (x, whole) in module.iter().zip(whole) {
            if !x.is_parameter {
                continue;
            }
            let part = x.elements.div_ceil(parallel.world) * x.dtype.width();
            match on_host && x.elements > threshold {
                true => parts += part,
                false => _ = script.alloc(part),
            }
            script.free(whole);
        }
    }
    for module in &modules {
        let gathered = module.iter().filter(|x| x.is_parameter);
        let gathered: Vec<_> = gathered
            .map(|x| script.alloc(x.elements.div_ceil(parallel.world) * parallel.world * x.dtype.width()))
            .collect();
        gathered.into_iter().for_each(|id| script.free(id));
    }
    stops(made.tape.failure())?;
    let own = Bytes::new(parts);
    Ok(on_card(
        Occasion::LoadPartitioned,
        script.peaks()?,
        host(own, own, &held, run),
    ))
}

/// Tensors of each module, in the order of the constructor.
pub(super) fn modules(held: &[Held]) -> Vec<Vec<&Held>> {
    let mut modules: Vec<Vec<&Held>> = Vec::new();
    for x in held {
        match modules.last_mut() {
            Some(last) if last[0].module == x.module => last.push(x),
            _ => modules.push(vec![x]),
        }
    }
    modules
}

/// Bytes of weights that the host casts or merges, and keeps; the rest stay in the files.
fn copied_bytes(held: &[Held], files: DType, to: DType) -> Bytes {
    let is_cast = |x: &&Held| x.is_parameter && x.dtype.is_float() && files != to;
    let copied = held.iter().filter(|x| is_cast(x) || x.is_merged);
    copied.map(|x| Bytes::new(x.bytes())).sum::<Bytes>() + merging(held)
}

/// Bytes that merging experts takes for a moment beside the result: of the largest fused weight of two maps as much again, in
/// which each map is stacked before they are joined.
fn merging(held: &[Held]) -> Bytes {
    let merged = held.iter().filter(|x| x.is_merged).map(|x| Bytes::new(x.bytes()));
    merged.max().unwrap_or_default()
}

/// Bytes of the largest weight that is cast.
fn largest_cast(held: &[Held], files: DType, to: DType) -> Bytes {
    let cast = held
        .iter()
        .filter(|x| x.is_parameter && x.dtype.is_float() && files != to);
    let bytes = cast.map(|x| Bytes::new(x.elements * to.width()));
    bytes.max().unwrap_or_default()
}

fn host(own: Bytes, most: Bytes, held: &[Held], run: &Run<'_>) -> HostBytes {
    HostBytes {
        own,
        range: [own, most],
        mapped: file_bytes(held, run.beside.files),
    }
}

pub(super) const fn on_card(occasion: Occasion, peaks: Peaks, host: HostBytes) -> OnCard {
    OnCard {
        occasion,
        allocated: peaks.allocated,
        reserved: peaks.reserved,
        host,
    }
}
