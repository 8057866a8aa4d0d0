//! Parameters of ZeRO stage 3: each GPU keeps a part of each, and has all of one while a module uses it
//! (`deepspeed/runtime/zero/partition_parameters.py`).

use std::collections::HashSet;
use std::rc::Rc;

use crate::dtype::DType;
use crate::setup::{Offload, Parallel};
use crate::tape::log::{ScopeId, StorageId};
use crate::tape::work::Beside;
use crate::tape::{Kind, Tape, Tensor, Why};

/// Whether a parameter is whole (`ZeroParamStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Away,
    InFlight,
    Here,
}

/// A parameter.
pub(super) struct Shard {
    /// The parameter that the model has, whose memory is lent.
    pub param: Tensor,
    /// Scope in which it was made.
    pub scope: ScopeId,
    /// Path of the module that has it.
    pub module: String,
    /// Elements of it.
    pub elements: u64,
    /// Elements of each GPU's part.
    pub part: u64,
    /// Type in which it is gathered.
    dtype: DType,
    /// True if it stays whole once it is.
    pub persists: bool,
    /// Modules that use it now (`ds_active_sub_modules`).
    pub users: Vec<usize>,
    status: Status,
    gather: Option<Rc<Gather>>,
}

/// A gather of parameters that was started (`AllGatherCoalescedHandle`), alive until each is waited for.
struct Gather {
    params: Vec<usize>,
    /// Memory into which all are gathered, one for each type, and from which each is copied; none if a single parameter's own
    /// memory is gathered into.
    buffers: Vec<Tensor>,
    /// Number of the work that gathers them.
    number: u32,
}

/// Stream of gathers, which DeepSpeed has if they overlap computing.
const GATHER: u32 = 1;

/// All parameters of the model.
pub(super) struct Shards {
    pub list: Vec<Shard>,
    world: u64,
    overlaps: bool,
    /// True if the host keeps the parts (`offload_param`).
    on_host: bool,
    /// Type of the model's weights and of gradients, in 16 bits.
    pub low: DType,
    /// Storages made on another stream than the model's.
    pub streams: Vec<(StorageId, u32)>,
    /// Elements that were gathered and not released in this pass, but for those that persist.
    pub available: i64,
    /// Parts, which of trained parameters lie in one buffer.
    parts: Vec<Tensor>,
}

impl Shards {
    /// `zero.Init` of a model that is made: cuts each parameter, and frees what was whole. If the model is made within it
    /// (`made`: the type that its weights have), that comes as each module's constructor ends, and each tensor is cast at once
    /// (`zero_wrapper_for_fp_tensor_constructor`).
    pub fn new(t: &Tape, params: &[Tensor], parallel: &Parallel, (low, made): (DType, Option<DType>)) -> Self {
        let (world, threshold) = (parallel.world, parallel.zero.stage3_param_persistence_threshold);
        let on_host = parallel.offload == Offload::OptimizerAndParameters;
        let paths: Vec<String> = params.iter().map(|param| t.path_of(param)).collect();
        let mut modules = modules(&paths).into_iter();
        let shard = |param: &Tensor| {
            // Weights in 4 bits lie in a tensor of bf16 (`bnb_4bit_quant_storage`).
            let (elements, dtype) = match param.dtype() {
                DType::U8 => (param.numel() / DType::Bf16.width(), DType::Bf16),
                dtype => (param.numel(), dtype),
            };
            Shard {
                scope: t.scope_of(param),
                module: modules.next().unwrap_or_default(),
                elements,
                part: elements.div_ceil(world),
                dtype,
                persists: elements <= threshold,
                users: Vec::new(),
                status: Status::Away,
                gather: None,
                param: param.clone(),
            }
        };
        let list: Vec<Shard> = params.iter().map(shard).collect();
        if made.is_some() {
            t.unmake(params);
        }
        let is_adapter = |at: &usize| made.is_some() && paths[*at].contains(".lora_");
        let (adapters, own): (Vec<usize>, Vec<usize>) = (0..list.len()).partition(is_adapter);
        let parts = cut(t, &list, ([own, adapters], on_host), (low, made));
        Self {
            list,
            world,
            overlaps: parallel.overlaps(),
            on_host,
            low,
            streams: Vec::new(),
            available: 0,
            parts,
        }
    }

    /// `defragment`: moves the parts of trained parameters into one buffer, by way of the host.
    pub fn defragment(&mut self, t: &Tape) -> Option<Tensor> {
        if self.on_host {
            return None;
        }
        let trained: Vec<usize> = self.trained().collect();
        let elements = trained.iter().map(|&at| self.list[at].part).sum::<u64>();
        trained.iter().for_each(|&at| t.give_up(&self.parts[at]));
        t.empty_cache();
        let flat = part(t, 0, (elements, self.of_trained()));
        trained.iter().for_each(|&at| t.lend(&self.parts[at], &flat));
        Some(flat)
    }

    /// Trained parameters.
    pub fn trained(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.list.len()).filter(|at| self.list[*at].param.requires_grad())
    }

    /// Type of the trained parameters.
    pub fn of_trained(&self) -> DType {
        self.trained().next().map_or(self.low, |at| self.list[at].dtype)
    }

    /// Memory in which the parts lie, and true if it is of trained parameters.
    pub fn memory(&self, flat: Option<&Tensor>) -> Vec<(Tensor, bool)> {
        let kept = self
            .parts
            .iter()
            .zip(&self.list)
            .filter(|(_, shard)| !shard.param.requires_grad());
        let mut memory: Vec<(Tensor, bool)> = kept.map(|(part, _)| (part.clone(), false)).collect();
        memory.extend(flat.map(|flat| (flat.clone(), true)));
        memory
    }

    /// Copies of parts that the host keeps, on the GPU.
    fn copies(&mut self, t: &Tape, params: &[usize]) -> Vec<Tensor> {
        let copied = params.iter().filter(|_| self.on_host);
        let copies: Vec<Tensor> = copied
            .map(|&at| t.empty([self.list[at].part], self.list[at].dtype, "copy of a part"))
            .collect();
        copies.iter().for_each(|copy| self.note(copy));
        copies
    }

    /// Lends a parameter its only part, or a copy of it.
    fn lend_whole(&mut self, t: &Tape, at: usize) {
        match self.on_host {
            true => self.take(t, at, self.list[at].elements),
            false => t.lend(&self.list[at].param, &self.parts[at]),
        }
    }

    /// Returns true if a parameter is neither whole nor about to be.
    pub fn is_away(&self, at: usize) -> bool {
        self.list[at].status == Status::Away
    }

    /// Starts to gather those of `wanted` that are away (`all_gather_coalesced`).
    pub fn start(&mut self, t: &Tape, wanted: &[usize]) {
        let mut params: Vec<usize> = wanted.iter().copied().filter(|&at| self.is_away(at)).collect();
        params.sort_unstable();
        let Some(&first) = params.first() else { return };
        self.available += params.iter().map(|&at| self.list[at].elements as i64).sum::<i64>();
        let buffers = match (self.world, &params[..]) {
            (1, _) => {
                params.iter().for_each(|&at| self.lend_whole(t, at));
                Vec::new()
            }
            (_, [_]) => {
                self.take(t, first, self.list[first].part * self.world);
                drop(self.copies(t, &params));
                Vec::new()
            }
            _ => {
                // `sort_dtypes`: those of 16 bits before those in fp32.
                params.sort_by_key(|&at| self.list[at].dtype.width());
                let of_type = params.chunk_by(|&a, &b| self.list[a].dtype == self.list[b].dtype);
                let of_type: Vec<Vec<usize>> = of_type.map(<[usize]>::to_vec).collect();
                let mut gather = |of_type: Vec<usize>| {
                    let elements = of_type.iter().map(|&at| self.list[at].part).sum::<u64>() * self.world;
                    let buffer = t.empty([elements], self.list[of_type[0]].dtype, "gathered parameters");
                    self.note(&buffer);
                    drop(self.copies(t, &of_type));
                    buffer
                };
                of_type.into_iter().map(&mut gather).collect()
            }
        };
        let number = self.gathered(t, &params, !self.overlaps);
        let gather = Rc::new(Gather {
            params,
            buffers,
            number,
        });
        for &at in &gather.params {
            self.list[at].status = Status::InFlight;
            self.list[at].gather = Some(gather.clone());
        }
    }

    /// Notes the work that gathers parameters, behind what is computed if it `follows`, and returns its number.
    fn gathered(&self, t: &Tape, params: &[usize], follows: bool) -> u32 {
        t.hook("deepspeed gather", 1);
        t.hook("deepspeed gathered parameter", params.len());
        let parts = params
            .iter()
            .map(|&at| self.list[at].part * self.list[at].dtype.width());
        let parts = parts.sum::<u64>();
        let copied = match self.on_host {
            true => t.beside((Beside::ToDevice, parts), follows, 0),
            false => 0,
        };
        match self.world {
            1 => copied,
            world => t.beside((Beside::AllGather, parts * world), follows, copied),
        }
    }

    /// Waits for a parameter if it is in flight: all that were gathered with it are whole from then on.
    pub fn wait(&mut self, t: &Tape, at: usize) {
        let Some(gather) = self.list[at].gather.take() else {
            return;
        };
        if self.list[gather.params[0]].status == Status::InFlight {
            t.join(gather.number);
        }
        for &of in &gather.params {
            if self.list[of].status != Status::InFlight {
                continue;
            }
            if !gather.buffers.is_empty() {
                self.take(t, of, self.list[of].elements);
                let bytes = self.list[of].elements * self.list[of].dtype.width();
                t.copied(self.list[of].dtype, [bytes, bytes]);
            }
            self.list[of].status = Status::Here;
        }
    }

    /// Gives a parameter memory for so many elements.
    fn take(&mut self, t: &Tape, at: usize, elements: u64) {
        let shard = &self.list[at];
        let whole = t.in_scope(shard.scope, || {
            t.as_kind(Kind::Weight, || t.empty([elements], shard.dtype, "gathered parameter"))
        });
        whole.storage().classify(Kind::Weight, Why::Parameter);
        t.lend(&shard.param, &whole);
        self.note(&whole);
    }

    /// Notes that a tensor is made on the stream of gathers.
    fn note(&mut self, x: &Tensor) {
        if self.overlaps {
            self.streams.extend(x.storage().id().map(|id| (id, GATHER)));
        }
    }

    /// Releases a parameter that is whole and that no module uses (`__release_param`).
    pub fn release(&mut self, t: &Tape, at: usize) {
        let shard = &mut self.list[at];
        if shard.status == Status::Here && shard.users.is_empty() {
            t.take_back(&shard.param);
            shard.status = Status::Away;
            self.available -= shard.elements as i64;
        }
    }

    /// Waits for all that is in flight, and releases it.
    pub fn land(&mut self, t: &Tape) {
        for at in 0..self.list.len() {
            if self.list[at].gather.is_some() {
                self.wait(t, at);
                self.release(t, at);
            }
        }
    }

    /// `release_and_reset_all`.
    pub fn release_all(&mut self, t: &Tape) {
        for at in 0..self.list.len() {
            self.wait(t, at);
            self.list[at].users.clear();
            self.release(t, at);
        }
    }

    /// Gathers a parameter and waits for it (`param.all_gather()`).
    pub fn gather_at_once(&mut self, t: &Tape, at: usize) {
        let number = self.gathered(t, &[at], true);
        t.join(number);
        self.make_whole(t, at);
    }

    /// Gives a parameter the memory of all of it.
    fn make_whole(&mut self, t: &Tape, at: usize) {
        match self.world {
            1 => self.lend_whole(t, at),
            world => self.take(t, at, self.list[at].part * world),
        }
        self.list[at].status = Status::Here;
    }

    /// `_allgather_params_coalesced` of those that persist, at the end of a step.
    pub fn gather_persistent(&mut self, t: &Tape) {
        let is_wanted = |at: &usize| self.list[*at].persists && self.is_away(*at);
        let wanted: Vec<usize> = (0..self.list.len()).filter(is_wanted).collect();
        self.gather_together(t, &wanted);
    }

    /// `GatheredParameters` of the whole model.
    pub fn gather_all(&mut self, t: &Tape) {
        let wanted: Vec<usize> = (0..self.list.len()).filter(|&at| self.is_away(at)).collect();
        self.gather_together(t, &wanted);
    }

    /// `_allgather_params_coalesced`: each into memory of its own.
    fn gather_together(&mut self, t: &Tape, wanted: &[usize]) {
        let own = self.streams.len();
        let copies = match (self.world, wanted) {
            (1, _) | (_, [_]) => Vec::new(),
            _ => self.copies(t, wanted),
        };
        if !wanted.is_empty() {
            let number = self.gathered(t, wanted, true);
            t.join(number);
        }
        wanted.iter().for_each(|&at| self.make_whole(t, at));
        if wanted.len() == 1 && self.world > 1 {
            drop(self.copies(t, wanted));
        }
        drop(copies);
        // This gather is none of the coordinator's, which has a stream.
        self.streams.truncate(own);
    }
}

/// Modules of parameters with these paths: peft puts a map that it adapts into another as `base_layer`.
fn modules(paths: &[String]) -> Vec<String> {
    let adapted: HashSet<&str> = paths
        .iter()
        .filter_map(|path| path.strip_suffix(".lora_A.weight"))
        .collect();
    let module = |path: &String| {
        let own = path.rsplit_once('.').map_or("", |(module, _)| module);
        match adapted.contains(own) {
            true => format!("{own}.base_layer"),
            false => own.to_owned(),
        }
    };
    paths.iter().map(module).collect()
}

/// Makes this GPU's part of each parameter, and frees what is whole: of the weights, and of adapters, which peft makes in the
/// type of the weights and widens before the engine cuts them. `made`: the type of weights that are made within `zero.Init`.
fn cut(
    t: &Tape,
    list: &[Shard],
    ([own, adapters], on_host): ([Vec<usize>; 2], bool),
    (low, made): (DType, Option<DType>),
) -> Vec<Tensor> {
    let mut parts: Vec<Option<Tensor>> = vec![None; list.len()];
    let whole = |at: usize, dtype: DType| part(t, list[at].scope, (list[at].elements, dtype));
    let mut cut = |at: usize, whole: Option<Tensor>| {
        let shard = &list[at];
        parts[at] = (!on_host).then(|| part(t, shard.scope, (shard.part, shard.dtype)));
        drop(whole);
        t.give_up(&shard.param);
    };
    for of_module in own.chunk_by(|&a, &b| list[a].scope == list[b].scope) {
        let wholes = of_module.iter().map(|&at| {
            let dtype = list[at].dtype;
            let wide = made?;
            let _wide = (dtype.is_half() && wide != dtype).then(|| whole(at, wide));
            Some(whole(at, dtype))
        });
        let wholes: Vec<Option<Tensor>> = wholes.collect();
        of_module.iter().zip(wholes).for_each(|(&at, whole)| cut(at, whole));
    }
    let narrow: Vec<Tensor> = adapters.iter().map(|&at| whole(at, low)).collect();
    let wide = adapters
        .iter()
        .zip(narrow)
        .map(|(&at, narrow)| match list[at].dtype == low {
            true => narrow,
            false => whole(at, list[at].dtype),
        });
    let wide: Vec<Tensor> = wide.collect();
    adapters.iter().zip(wide).for_each(|(&at, whole)| cut(at, Some(whole)));
    parts.into_iter().flatten().collect()
}

/// Memory for a part of parameters.
fn part(t: &Tape, scope: ScopeId, (elements, dtype): (u64, DType)) -> Tensor {
    let part = t.in_scope(scope, || {
        t.as_kind(Kind::Weight, || t.empty([elements], dtype, "this GPU's part"))
    });
    part.storage().classify(Kind::Weight, Why::Parameter);
    part
}
