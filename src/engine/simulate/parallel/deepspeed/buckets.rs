//! Buckets in which stages 1 and 2 reduce gradients (`reduce_independent_p_g_buckets_and_remove_grads`).

use super::group::{Group, Groups, part_of};
use super::host::Host;
use crate::dtype::DType;
use crate::tape::log::StorageId;
use crate::tape::work::Beside;
use crate::tape::{Kind, Tape, Tensor, Why};

/// The buffers of a backward, and what is in them.
pub(super) struct Buckets {
    /// Elements of a buffer.
    size: u64,
    /// Number of buffers.
    count: usize,
    buffers: Vec<Tensor>,
    /// Elements in the buffer that is being filled.
    elements: u64,
    /// Parameters whose gradients wait to be reduced.
    waiting: Vec<usize>,
    /// True if gradients move into the buffers, or else are copied together when they are summed.
    is_contiguous: bool,
    /// Parameters of other GPUs whose gradients are dropped at the next reduction, which runs beside backward
    /// (`previous_reduced_grads`).
    dropped_next: Vec<usize>,
    /// True if gradients are summed for the GPU that keeps them.
    scatters: bool,
    /// True once the buffers of a backward are made.
    ready: bool,
    /// Gradients of this GPU's parameters, whole.
    own: Option<Tensor>,
    /// True if each gradient that is reduced moves to `own` or is dropped, as stage 2 does it; else those of other
    /// GPUs stay.
    pub drops: bool,
    /// Parameters whose gradient has moved into a buffer or to `own`.
    moved: Vec<bool>,
    /// Where this GPU's gradients go, if the host keeps them.
    pub host: Option<Host>,
    /// True if gradients that are reduced are those of the whole step.
    pub is_boundary: bool,
    /// Storages that are made on the stream of reductions, which DeepSpeed has if they overlap backward.
    pub streams: Vec<(StorageId, u32)>,
    /// Number of the last work that reduces or keeps gradients.
    reduction: u32,
}

/// Stream of reductions that overlap backward.
const REDUCTION: u32 = 1;

/// Settings of the buckets.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub size: u64,
    pub overlaps: bool,
    pub is_contiguous: bool,
    pub scatters: bool,
    pub drops: bool,
}

impl Buckets {
    pub fn new(form: Form, params: usize) -> Self {
        Self {
            size: form.size,
            count: if form.overlaps { 2 } else { 1 },
            buffers: Vec::new(),
            elements: 0,
            waiting: Vec::new(),
            is_contiguous: form.is_contiguous,
            dropped_next: Vec::new(),
            scatters: form.scatters,
            ready: false,
            own: None,
            drops: form.drops,
            moved: vec![false; params],
            host: None,
            is_boundary: true,
            streams: Vec::new(),
            reduction: 0,
        }
    }

    /// `setup_buckets`: makes the buffers on the first gradient of a backward.
    pub fn prepare(&mut self, t: &Tape, groups: &Groups) {
        if std::mem::replace(&mut self.ready, true) || !self.is_contiguous {
            return;
        }
        self.buffers = (0..self.count)
            .map(|_| {
                let buffer = t.as_kind(Kind::Gradient, || {
                    t.empty([self.size], groups.dtype(), "bucket of gradients")
                });
                buffer.storage().classify(Kind::Gradient, Why::Gradient);
                buffer
            })
            .collect();
    }

    /// Puts a parameter's gradient into the bucket, which is reduced first if it has no room.
    pub fn put(&mut self, t: &Tape, groups: &Groups, at: usize) {
        let param = &groups.params[at];
        let elements = param.numel();
        if elements == 0 {
            return;
        }
        if self.elements + elements > self.size {
            self.reduce(t, groups);
        }
        t.hook("deepspeed gradient", 1);
        if !self.is_contiguous {
            // It stays where it is.
        } else if elements <= self.size {
            let bytes = elements * groups.dtype().width();
            t.copied(groups.dtype(), [bytes, bytes]);
            param.clear_grad();
            self.moved[at] = true;
        } else if self.host.is_some() {
            let given = param.grad();
            param.clear_grad();
            param.hold_gradient(t);
            drop(given);
        }
        self.elements += elements;
        self.waiting.push(at);
    }

    /// `reduce_ipg_grads`: averages what waits, and keeps the gradients of this GPU's parameters.
    pub fn reduce(&mut self, t: &Tape, groups: &Groups) {
        if self.waiting.is_empty() {
            return;
        }
        t.hook("deepspeed bucket", 1);
        // The computation waits for the reduction before (`wait_stream`).
        t.join(std::mem::take(&mut self.reduction));
        if !self.is_contiguous {
            return self.reduce_apart(t, groups);
        }
        self.average(t, groups);
        let own = self.waiting.iter().filter(|&&at| groups.is_own(at));
        let own = own.map(|&at| groups.own_elements(at)).sum::<u64>();
        self.kept(t, groups, own);
        for at in std::mem::take(&mut self.waiting) {
            let own = groups.is_own(at);
            if own && self.host.is_some() {
                self.hand_over(t, groups, at);
            } else if own {
                self.keep(t, groups);
                groups.params[at].clear_grad();
                self.moved[at] = true;
            } else if self.drops && !own {
                groups.params[at].clear_grad();
                self.moved[at] = false;
            }
        }
        self.elements = 0;
    }

    /// Notes a kernel on the stream of reductions, which is the computation's if they do not overlap backward.
    fn copy(&mut self, t: &Tape, groups: &Groups, bytes: u64) {
        match self.count > 1 {
            true => self.reduction = t.beside((Beside::Copy, bytes), true, 0),
            false => t.copied(groups.dtype(), [bytes / 2, bytes / 2]),
        }
    }

    /// Notes that so many of this GPU's gradients are copied to where they are kept, or handed to the host in fp32.
    fn kept(&mut self, t: &Tape, groups: &Groups, elements: u64) {
        match self.host.is_some() && self.is_boundary {
            true => {
                let bytes = elements * DType::F32.width();
                self.reduction = t.beside((Beside::ToHost, bytes), true, self.reduction);
            }
            false => self.copy(t, groups, 2 * elements * groups.dtype().width()),
        }
    }

    /// Notes that the host waits for all reductions, if they overlap backward.
    pub fn settle(&mut self, t: &Tape) {
        let last = std::mem::take(&mut self.reduction);
        if self.count > 1 || self.host.is_some() {
            t.await_on_host(last);
        }
        t.join(last);
    }

    /// `buffered_reduce_fallback`: gradients that lie apart are summed in one copy over all GPUs, each of which has them then;
    /// stage 2 drops those of other GPUs.
    fn reduce_apart(&mut self, t: &Tape, groups: &Groups) {
        self.drop_others(groups);
        let sizes: Vec<u64> = self.waiting.iter().map(|&at| groups.params[at].numel()).collect();
        self.sum(t, groups, &sizes);
        for at in std::mem::take(&mut self.waiting) {
            if self.drops && !groups.is_own(at) {
                self.dropped_next.push(at);
            }
        }
        self.elements = 0;
        if self.count == 1 {
            self.drop_others(groups);
        }
    }

    /// Drops gradients of other GPUs, whose reduction is over.
    pub fn drop_others(&mut self, groups: &Groups) {
        for at in std::mem::take(&mut self.dropped_next) {
            groups.params[at].clear_grad();
        }
    }

    /// `average_tensor`: copies of the gradients, in one tensor, are summed over all GPUs (`allreduce_and_scatter`).
    fn average(&mut self, t: &Tape, groups: &Groups) {
        if !self.scatters {
            return;
        }
        // Neighbours that the same GPU keeps become one slice (`average_tensor`): they lie side by side in the bucket.
        let mut slices: Vec<(u64, u64)> = Vec::new();
        for (gpu, elements) in self.waiting.iter().flat_map(|&at| groups.slices(at)) {
            match slices.last_mut() {
                Some((last, count)) if *last == gpu => *count += elements,
                _ => slices.push((gpu, elements)),
            }
        }
        let (mut open, mut count) = (Vec::new(), 0);
        for (_, elements) in slices {
            open.push(elements);
            count += elements;
            // Compared after a slice was added, as DeepSpeed does: a copy may be larger than a bucket by one slice.
            if count > self.size {
                self.sum(t, groups, &open);
                (open, count) = (Vec::new(), 0);
            }
        }
        self.sum(t, groups, &open);
    }

    /// Sums tensors over all GPUs in one copy; a single tensor is summed in place.
    fn sum(&mut self, t: &Tape, groups: &Groups, elements: &[u64]) {
        let bytes = elements.iter().sum::<u64>() * groups.dtype().width();
        // It is divided, copied together and back.
        let passes = if elements.len() > 1 { 3 } else { 1 };
        self.copy(t, groups, 2 * passes * bytes);
        if groups.world > 1 {
            self.reduction = t.beside((Beside::AllReduce, bytes), true, self.reduction);
        }
        if self.count == 1 {
            t.join(std::mem::take(&mut self.reduction));
        }
        if elements.len() > 1 {
            let copy = t.empty([elements.iter().sum::<u64>()], groups.dtype(), "gradients to be summed");
            self.of_reduction(&copy);
        }
    }

    /// Notes that a tensor is made on the stream of reductions.
    fn of_reduction(&mut self, x: &Tensor) {
        if self.count > 1 {
            self.streams.extend(x.storage().id().map(|id| (id, REDUCTION)));
        }
    }

    /// `copy_grads_in_partition`: the first gradient makes a buffer for all of this GPU's parameters.
    fn keep(&mut self, t: &Tape, groups: &Groups) {
        if self.own.is_some() {
            return;
        }
        let elements = groups.own().map(|own| groups.params[own].numel()).sum::<u64>();
        let own = t.as_kind(Kind::Gradient, || t.empty([elements], groups.dtype(), "own gradients"));
        own.storage().classify(Kind::Gradient, Why::Gradient);
        self.of_reduction(&own);
        self.own = Some(own);
    }

    /// `copy_grads_in_partition`, if the host keeps the gradients.
    fn hand_over(&mut self, t: &Tape, groups: &Groups, at: usize) {
        if !self.is_boundary {
            return;
        }
        let param = &groups.params[at];
        let gradient = param.grad().or_else(|| self.buffers.first().cloned());
        if let (Some(gradient), Some(host)) = (gradient, &mut self.host) {
            host.copy(t, &part_of(t, &gradient, param.numel()), groups.own_elements(at));
        }
        param.clear_grad();
    }

    /// Gradients of this GPU's parameters of a group, as the buffer, their own tensors, or zeros hold them
    /// (`get_all_grad_tensors`).
    pub fn own_gradients(&self, t: &Tape, groups: &Groups, group: &Group) -> Vec<Tensor> {
        let of = |at: usize| {
            let param = &groups.params[at];
            match (&self.own, param.grad()) {
                (_, Some(gradient)) => t.view(&gradient, [gradient.numel()]),
                (Some(own), None) if self.moved[at] => part_of(t, own, param.numel()),
                _ => t.empty([param.numel()], groups.dtype(), "zeros for a gradient"),
            }
        };
        groups.own_of(group).map(of).collect()
    }

    /// Drops the buffers and what they hold.
    pub fn release(&mut self, groups: &Groups) {
        self.buffers.clear();
        self.own = None;
        self.ready = false;
        self.moved.fill(false);
        groups.params.iter().for_each(Tensor::clear_grad);
    }
}
