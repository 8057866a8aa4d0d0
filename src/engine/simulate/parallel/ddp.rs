//! `DistributedDataParallel`: buckets of gradients, and what goes around a forward (`torch/nn/parallel/distributed.py`,
//! `torch/csrc/distributed/c10d/reducer.cpp`).

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use super::super::steps::Trainer;
use super::super::trl::REFERENCE_SCOPE;
use super::super::wrapper::Wrapper;
use super::units::pattern;
use crate::Setup;
use crate::dtype::DType;
use crate::nn::FusedOutput;
use crate::setup::{Checkpointing, Freeze, Parallel};
use crate::tape::{Failure, Kind, LogProbs, Tape, Tensor, Why};

/// A wrapped model.
struct Ddp {
    /// Memory for all gradients, which are copied here to be summed.
    buckets: RefCell<Vec<Tensor>>,
    /// Buckets that take their place after the first step (`Reducer::rebuild_buckets`); empty if they stay.
    rebuilt: Vec<Bucket>,
    /// Elements of the buffers, which the first GPU sends before each forward, by type.
    buffers: Vec<(DType, u64)>,
    /// True if the graph is searched for unused parameters, for which the outputs are copied (`_DDPSink`).
    finds_unused: bool,
    /// True if the forward before was of a micro-batch whose gradients were summed (`require_forward_param_sync`).
    sends: Cell<bool>,
    /// True while gradients are summed: in the last micro-batch of a step, the others run under `no_sync`.
    sums: Cell<bool>,
    trained: Vec<Tensor>,
}

/// Wraps a model; with `view`, gradients are parts of the buckets once they are summed (`gradient_as_bucket_view`).
///
/// Unless unused parameters are looked for, all gradients of the first step share one bucket of each type (`sys.maxsize` in
/// `_ddp_init_helper`); when the second forward begins, it gives way to buckets in the order in which gradients were ready.
/// Both are recorded, since the layout of their memory decides how much stays unused behind smaller tensors. Steps that are
/// recorded as one have the rebuilt ones from the start, which take the same bytes in total. While NCCL's work holds the old
/// one, both are live; that depends on its watchdog and is not simulated.
pub(super) fn wrap(
    t: &Tape,
    (trainer, params): (&mut Trainer, &[Tensor]),
    (setup, parallel): (&Setup, &Parallel),
    view: bool,
) {
    let states: Vec<Size> = params.iter().map(size).chain(buffers_of(t)).collect();
    send_states(t, &states);
    let trained: Vec<Tensor> = params.iter().filter(|param| param.requires_grad()).cloned().collect();
    let sizes: Vec<Size> = trained.iter().map(size).collect();
    let (limits, finds_unused) = (limits(parallel), finds_unused(setup));
    let in_order_of_backward = || assigned(&sizes, (0..sizes.len()).rev(), limits);
    let (assigned, rebuilt) = if finds_unused {
        (in_order_of_model(&sizes, limits), Vec::new())
    } else if setup.trainer.is_derived() && !view {
        (in_order_of_model(&sizes, [u64::MAX; 2]), in_order_of_backward())
    } else {
        (in_order_of_backward(), Vec::new())
    };
    let buckets: Vec<Tensor> = assigned.iter().map(|bucket| memory(t, bucket)).collect();
    let ddp = Rc::new(Ddp {
        buckets: RefCell::new(buckets),
        rebuilt,
        buffers: buffers(t),
        finds_unused,
        sends: Cell::new(true),
        sums: Cell::new(true),
        trained: trained.clone(),
    });
    if view {
        let hooked = ddp.clone();
        t.on_gradient(Rc::new(move |t: &Tape, param: &Tensor| {
            let of = trained.iter().position(|known| known.is(param));
            let bucket = of.and_then(|of| assigned.iter().position(|bucket| bucket.params.contains(&of)));
            if let Some(bucket) = bucket.filter(|_| hooked.sums.get()) {
                t.move_gradient(param, &hooked.buckets.borrow()[bucket]);
            }
        }));
    }
    trainer.wrap(ddp, view);
}

/// True if a trainer asks DDP to look for unused parameters (`_build_accelerator_args`): not of a model of transformers'
/// that checkpoints.
fn finds_unused(setup: &Setup) -> bool {
    let is_adapted = matches!(setup.freeze, Freeze::Lora | Freeze::Qlora);
    setup.trainer.is_derived() && (is_adapted || setup.ckpt == Checkpointing::None)
}

/// Type and elements of a tensor.
pub(super) type Size = (DType, u64);

fn size(tensor: &Tensor) -> Size {
    (tensor.dtype(), tensor.numel())
}

/// Bytes of parameters and buffers that are sent at once (`broadcast_bucket_size`).
const SENT_AT_ONCE: u64 = 250 << 20;

/// `_sync_module_states`: the first GPU sends all parameters and buffers, copied together by type, two copies at a time
/// (`broadcast_coalesced`). Their memory is cached then, and what is made afterwards is cut from it.
pub(super) fn send_states(t: &Tape, sizes: &[Size]) {
    let mut copies = assigned(sizes, 0..sizes.len(), [SENT_AT_ONCE; 2]);
    copies.sort_by_key(|copy| copy.params.first().copied());
    let mut in_flight = VecDeque::new();
    for copy in &copies {
        if in_flight.len() == 2 {
            in_flight.pop_front();
        }
        in_flight.push_back(t.in_scope(0, || t.empty([copy.elements], copy.dtype, "states to be sent")));
    }
}

/// A bucket.
struct Bucket {
    dtype: DType,
    elements: u64,
    params: Vec<usize>,
}

/// Buckets of the parameters in the order of the model, which are listed last first (`_ddp_init_helper`), as backward
/// nearly reaches them.
fn in_order_of_model(sizes: &[Size], limits: [u64; 2]) -> Vec<Bucket> {
    let mut buckets = assigned(sizes, 0..sizes.len(), limits);
    buckets.sort_by_key(|bucket| std::cmp::Reverse(bucket.params.first().copied()));
    buckets
}

/// Bytes at which the first bucket of a type is full, and each after it: the first is smaller where no limit is given
/// (`_DEFAULT_FIRST_BUCKET_BYTES`), so that its sum begins early.
fn limits(parallel: &Parallel) -> [u64; 2] {
    let limit = parallel.bucket << 20;
    let is_given = parallel.bucket != Parallel::default().bucket;
    [if is_given { limit } else { 1 << 20 }, limit]
}

/// `compute_bucket_assignment_by_size` over the parameters in this order: a bucket is full once it holds as many bytes as its
/// limit says; each type has its own.
fn assigned(sizes: &[Size], order: impl Iterator<Item = usize>, limits: [u64; 2]) -> Vec<Bucket> {
    let mut open: Vec<Bucket> = Vec::new();
    let mut full: Vec<Bucket> = Vec::new();
    for of in order {
        let (dtype, elements) = sizes[of];
        let at = open.iter().position(|bucket| bucket.dtype == dtype).unwrap_or_else(|| {
            open.push(Bucket {
                dtype,
                elements: 0,
                params: Vec::new(),
            });
            open.len() - 1
        });
        open[at].elements += elements;
        open[at].params.push(of);
        let limit = limits[usize::from(full.iter().any(|bucket| bucket.dtype == dtype))];
        if open[at].elements * dtype.width() >= limit {
            full.push(open.remove(at));
        }
    }
    full.extend(open);
    full
}

fn memory(t: &Tape, bucket: &Bucket) -> Tensor {
    let bucket = t.in_scope(0, || {
        t.as_kind(Kind::Gradient, || {
            t.empty([bucket.elements], bucket.dtype, "DDP bucket")
        })
    });
    bucket.storage().classify(Kind::Gradient, Why::Gradient);
    bucket
}

/// Each buffer of a model. The one that DPO compares with is not wrapped.
fn buffers_of(t: &Tape) -> Vec<Size> {
    t.read_log(|log| {
        let all = (0..log.allocations.len()).map(|id| &log.allocations[id]);
        let own = all.filter(|of| of.why == Why::Buffer && !log.path(of.scope).starts_with(REFERENCE_SCOPE));
        own.map(|buffer| (buffer.dtype, buffer.shape.numel())).collect()
    })
}

/// Elements of a model's buffers by type, where there are several of one.
fn buffers(t: &Tape) -> Vec<Size> {
    let mut sums: Vec<(DType, u64, u64)> = Vec::new();
    for (of, elements) in buffers_of(t) {
        match sums.iter_mut().find(|(dtype, _, _)| *dtype == of) {
            Some((_, sum, count)) => (*sum, *count) = (*sum + elements, *count + 1),
            None => sums.push((of, elements, 1)),
        }
    }
    let several = sums.into_iter().filter(|(_, _, count)| *count > 1);
    several.map(|(dtype, sum, _)| (dtype, sum)).collect()
}

impl Wrapper for Ddp {
    fn begin(&self, is_last: bool) {
        self.sums.set(is_last);
    }

    /// `Reducer::ensure_prior_reduction_finished`, by which the next forward begins.
    fn after_backward(&self, t: &Tape) {
        if self.finds_unused || !self.sums.get() {
            return;
        }
        let (used, unused): (Vec<&Tensor>, Vec<&Tensor>) =
            self.trained.iter().partition(|param| param.grad().is_some());
        if unused.is_empty() {
            return;
        }
        // Of equal layers one runs here, for all.
        let used: HashSet<String> = used.into_iter().map(|param| pattern(&t.path_of(param))).collect();
        let paths = unused.into_iter().map(|param| t.path_of(param));
        if let Some(parameter) = paths.into_iter().find(|path| !used.contains(&pattern(path))) {
            t.fail(|| Failure::UnusedParameter { parameter });
        }
    }

    /// The second forward begins with it; a step that repeats itself has it behind the first one.
    fn after_first_step(&self, t: &Tape) {
        if !self.rebuilt.is_empty() {
            self.buckets.borrow_mut().clear();
            self.buckets
                .replace(self.rebuilt.iter().map(|bucket| memory(t, bucket)).collect());
        }
    }

    /// `_sync_buffers`, which `no_sync` leaves out in the forward after it.
    fn before_forward(&self, t: &Tape) {
        if !self.sends.replace(self.sums.get()) {
            return;
        }
        for (dtype, elements) in &self.buffers {
            drop(t.in_scope(0, || t.empty([*elements], *dtype, "buffers to be sent")));
        }
    }

    /// `_post_forward`: copies pass through a node of the graph that does nothing to their gradients.
    fn wrapped_outputs(&self, t: &Tape, loss: Option<&Tensor>, held: Vec<Tensor>) -> Vec<Tensor> {
        if !self.finds_unused {
            return held;
        }
        let outputs = loss.into_iter().chain(&held);
        let copies = outputs.map(|x| t.no_grad(|| t.empty_like(x, x.dtype(), "copy of an output")));
        let copies: Vec<Tensor> = copies.collect();
        drop(held);
        copies
    }

    fn wrapped_logits(&self, t: &Tape, logits: Tensor) -> Tensor {
        match self.finds_unused {
            true => t.clone_of(&logits),
            false => logits,
        }
    }

    /// Of what has no node in the graph, the copy is dropped.
    fn wrapped_figures(&self, t: &Tape, figures: FusedOutput) -> FusedOutput {
        if !self.finds_unused {
            return figures;
        }
        let mut dropped = Vec::new();
        let mut copy = |x: &Tensor| {
            let copy = t.clone_of(x);
            match x.requires_grad() {
                true => copy,
                false => {
                    dropped.push(copy);
                    x.clone()
                }
            }
        };
        let of = &figures.figures;
        FusedOutput {
            loss: copy(&figures.loss),
            figures: LogProbs {
                log_probs: copy(&of.log_probs),
                entropy: of.entropy.as_ref().map(&mut copy),
                mean_logits: of.mean_logits.as_ref().map(&mut copy),
                is_top1: of.is_top1.as_ref().map(&mut copy),
            },
            mask: copy(&figures.mask),
            count: figures.count.clone(),
        }
    }
}
