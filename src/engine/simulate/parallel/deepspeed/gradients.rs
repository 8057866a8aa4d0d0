//! Gradients of ZeRO stage 3: reduced in buckets, of which each GPU keeps its parts (`stage3.py`).

use super::group::part_of;
use super::shards::Shards;
use super::values;
use crate::dtype::DType;
use crate::setup::Parallel;
use crate::tape::log::StorageId;
use crate::tape::work::Beside;
use crate::tape::{Kind, Tape, Tensor, Why};

/// Stream of reductions, which DeepSpeed has if they overlap backward.
const REDUCTION: u32 = 2;

/// Gradients of all trained parameters.
pub(super) struct Gradients {
    world: u64,
    /// Elements of a bucket.
    size: u64,
    scatters: bool,
    overlaps: bool,
    /// Memory of the bucket; `None` if gradients stay where they are made.
    bucket: Option<Tensor>,
    /// Elements in the bucket.
    elements: u64,
    /// Parameters in the bucket.
    waiting: Vec<usize>,
    /// This GPU's parts of all gradients; `None` if the host keeps them.
    flat: Option<Tensor>,
    /// Norms of the gradients that were copied to the host in this step.
    norms: Vec<Tensor>,
    /// Parameters whose gradients were copied to the host in this step.
    copied_to_host: Vec<usize>,
    /// Micro-batches of this step so far.
    passes: u64,
    /// True if gradients that are reduced are those of the whole step.
    pub is_boundary: bool,
    /// Type of the gradients.
    dtype: DType,
    /// Storages made on another stream than the model's.
    pub streams: Vec<(StorageId, u32)>,
    /// Number of the last work that reduces, keeps or hands over gradients.
    reduction: u32,
}

impl Gradients {
    pub fn new(t: &Tape, shards: &Shards, parallel: &Parallel) -> Self {
        let (zero, dtype) = (parallel.zero, shards.low);
        let of_gradients = |elements: u64, name| {
            let x = t.as_kind(Kind::Gradient, || t.empty([elements], dtype, name));
            x.storage().classify(Kind::Gradient, Why::Gradient);
            x
        };
        let bucket = zero
            .contiguous_gradients
            .then(|| of_gradients(zero.reduce_bucket_size, "bucket of gradients"));
        let parts = shards.trained().map(|at| shards.list[at].part).sum();
        Self {
            world: parallel.world,
            size: zero.reduce_bucket_size,
            scatters: zero.reduce_scatter,
            overlaps: parallel.overlaps(),
            bucket,
            elements: 0,
            waiting: Vec::new(),
            flat: (!parallel.offload.is_any()).then(|| of_gradients(parts, "this GPU's gradients")),
            norms: Vec::new(),
            copied_to_host: Vec::new(),
            passes: 0,
            is_boundary: true,
            dtype,
            streams: Vec::new(),
            reduction: 0,
        }
    }

    /// `reduce_independent_p_g_buckets_and_remove_grads`: puts a gradient into the bucket, which is reduced first if it
    /// has no room.
    pub fn put(&mut self, t: &Tape, shards: &Shards, at: usize) {
        let shard = &shards.list[at];
        if self.elements > 0 && self.elements + shard.elements > self.size {
            self.reduce(t, shards);
        }
        // A gradient larger than the whole bucket is not copied into it: it stays where backward made it until it is
        // reduced, by itself.
        if self.bucket.is_some() && self.elements + shard.elements <= self.size {
            shard.param.clear_grad();
            self.copy(t, 2 * shard.elements * self.dtype.width());
        }
        self.elements += shard.elements;
        self.waiting.push(at);
    }

    /// `__reduce_and_partition_ipg_grads`: averages what waits, and keeps this GPU's parts.
    pub fn reduce(&mut self, t: &Tape, shards: &Shards) {
        if self.waiting.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        t.hook("deepspeed scatter", 1);
        let averaged = match self.bucket.is_some() && self.elements <= self.size && !self.scatters {
            true => self.all_reduced(t, shards, &waiting),
            false => {
                waiting.sort_unstable();
                self.scattered(t, shards, &waiting)
            }
        };
        self.elements = 0;
        let parts = waiting.iter().map(|&at| shards.list[at].part).sum::<u64>();
        self.keep(t, parts);
        // `partition_grads` names the copy of the last gradient in a variable of its loop, so one stays alive until the
        // next.
        let mut last = None;
        for &at in &waiting {
            let shard = &shards.list[at];
            if self.flat.is_none() {
                self.copied_to_host.push(at);
                self.copy_to_host(t, shard.part.min(shard.elements), &mut last);
            }
            shard.param.clear_grad();
        }
        drop((last, averaged));
    }

    /// Notes a kernel on the stream of reductions, which is the computation's if they do not overlap backward.
    fn copy(&mut self, t: &Tape, bytes: u64) {
        match self.overlaps {
            true => self.reduction = t.beside((Beside::Copy, bytes), true, 0),
            false => t.copied(self.dtype, [bytes / 2, bytes / 2]),
        }
    }

    /// Notes a sum over all GPUs of a buffer of so many elements, which is divided first.
    fn sum(&mut self, t: &Tape, work: Beside, elements: u64) {
        let bytes = elements * self.dtype.width();
        self.copy(t, 2 * bytes);
        if self.world > 1 {
            self.reduction = t.beside((work, bytes), !self.overlaps, self.reduction);
        }
        if !self.overlaps {
            t.join(self.reduction);
        }
    }

    /// `partition_grads`: notes that this GPU's parts are copied to where they are kept, or added to what is there; what the host
    /// keeps comes back to be added to, and goes there in fp32 too at the end of a step.
    fn keep(&mut self, t: &Tape, elements: u64) {
        let bytes = elements * self.dtype.width();
        if self.flat.is_some() {
            let passes = if self.passes > 1 { 3 } else { 2 };
            return self.copy(t, passes * bytes);
        }
        let mut last = t.beside((Beside::ToHost, bytes), !self.overlaps, self.reduction);
        last = t.beside((Beside::ToDevice, bytes), false, last);
        if self.is_boundary {
            last = t.beside((Beside::ToHost, elements * DType::F32.width()), false, last);
        }
        self.reduction = last;
    }

    /// `independent_gradient_partition_epilogue`: the host waits for all reductions.
    pub fn settle(&mut self, t: &Tape) {
        let last = std::mem::take(&mut self.reduction);
        t.await_on_host(last);
        t.join(last);
    }

    /// Copies a part of a gradient to the host by way of another copy on the GPU; at the end of a step after its norm is
    /// taken (`_offload_grad_partition_at_boundary`). A sum with the host's gradients has a name of its own, which holds
    /// the last until the next.
    fn copy_to_host(&mut self, t: &Tape, elements: u64, last: &mut Option<Tensor>) {
        if self.passes == 1 {
            drop(last.take());
        }
        let copy = t.empty([elements], self.dtype, "copy of a gradient");
        self.note(std::slice::from_ref(&copy));
        drop(last.replace(copy.clone()));
        if !self.is_boundary {
            return;
        }
        let square = {
            let _norm = values::double_norm(t, &copy);
            values::double(t, "square of a norm")
        };
        let root = values::double(t, "norm of a gradient");
        drop(square);
        self.note(std::slice::from_ref(&root));
        self.norms.push(root);
        drop(t.empty([elements], DType::F32, "gradient in fp32"));
    }

    /// What the GPU does of an update on the host: it sums norms of each group, whose parameters are given.
    pub fn sum_norms(&mut self, t: &Tape, groups: &[Vec<usize>]) {
        for group in groups {
            let mut total = None;
            for _ in group.iter().filter(|at| self.copied_to_host.contains(at)) {
                let square = values::double(t, "square of a norm");
                total.get_or_insert_with(|| values::double(t, "sum of squares"));
                drop(square);
            }
            let summed = t.empty([1], DType::F32, "sum of squares over the GPUs");
            let root = t.empty([], DType::F32, "norm of a group");
            drop(total);
            values::mask_invalid(t);
            drop((summed, root));
        }
    }

    /// `has_overflow`, which the loss scale of fp16 follows. What the host keeps is looked at there.
    pub fn check_overflow(&self, t: &Tape) {
        self.flat.iter().for_each(|flat| values::look_for_overflow(t, flat));
        let copy = t.empty([1], DType::Bool, "is any invalid");
        let byte = t.empty([1], DType::U8, "overflow");
        drop(copy);
        drop(byte);
    }

    /// A micro-batch begins.
    pub fn begin_pass(&mut self) {
        self.passes += 1;
    }

    /// Drops the norms of a step.
    pub fn forget_norms(&mut self) {
        self.norms.clear();
        self.copied_to_host.clear();
        self.passes = 0;
    }

    /// `__avg_scatter_contiguous_grads`: the bucket, multiplied by 1, and parts that are filled up with zeros.
    fn all_reduced(&mut self, t: &Tape, shards: &Shards, waiting: &[usize]) -> Vec<Tensor> {
        self.sum(t, Beside::AllReduce, self.elements);
        let mut made = Vec::new();
        if self.world > 1 {
            made.push(t.empty([self.elements], self.dtype, "averaged gradients"));
        }
        let short = waiting
            .iter()
            .filter(|&&at| shards.list[at].part > shards.list[at].elements);
        made.extend(short.map(|&at| t.empty([shards.list[at].part], self.dtype, "part with zeros")));
        self.note(&made);
        made
    }

    /// `reduce_scatter_coalesced`: copies of the gradients with each GPU's parts together, filled up to equal sizes.
    fn scattered(&mut self, t: &Tape, shards: &Shards, waiting: &[usize]) -> Vec<Tensor> {
        let of = |at: usize| (shards.list[at].elements, shards.list[at].part);
        // `reduce_scatter_coalesced` of a single tensor that divides evenly scatters a view of it: no copy is made.
        if let [only] = waiting
            && of(*only).0.is_multiple_of(self.world)
        {
            self.sum(t, Beside::ReduceScatter, of(*only).0);
            return Vec::new();
        }
        let mut paddings = Vec::new();
        for gpu in 0..self.world {
            for (elements, part) in waiting.iter().map(|&at| of(at)) {
                let real = elements.saturating_sub(gpu * part).min(part);
                if real < part {
                    paddings.push(t.empty([part - real], self.dtype, "padding"));
                }
            }
        }
        // Those in fp32 that are not in the bucket are cast for it.
        let wide = waiting.iter().filter_map(|&at| shards.list[at].param.grad());
        let wide = wide.filter(|gradient| gradient.dtype() != self.dtype);
        let cast: Vec<Tensor> = wide
            .map(|gradient| t.empty_like(&gradient, self.dtype, "gradient in 16 bits"))
            .collect();
        let all = waiting.iter().map(|&at| of(at).1).sum::<u64>() * self.world;
        let together = t.empty([all], self.dtype, "gradients to be summed");
        self.copy(t, 2 * all * self.dtype.width());
        self.sum(t, Beside::ReduceScatter, all);
        self.note(&paddings);
        self.note(std::slice::from_ref(&together));
        drop((paddings, cast));
        vec![together]
    }

    /// Notes that tensors are made on the stream of reductions.
    fn note(&mut self, made: &[Tensor]) {
        if self.overlaps {
            let ids = made.iter().filter_map(|x| x.storage().id());
            self.streams.extend(ids.map(|id| (id, REDUCTION)));
        }
    }

    /// A view of so many of this GPU's elements.
    pub fn part(&self, t: &Tape, elements: u64) -> Tensor {
        match &self.flat {
            Some(flat) => part_of(t, flat, elements),
            None => t.empty([elements], self.dtype, "part of a gradient"),
        }
    }
}
