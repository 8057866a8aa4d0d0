//! `DistributedDataParallel`: buckets of gradients, and what goes around a forward (`torch/nn/parallel/distributed.py`,
//! `torch/csrc/distributed/c10d/reducer.cpp`).

use std::cell::Cell;
use std::rc::Rc;

use super::super::steps::Trainer;
use super::super::wrapper::Wrapper;
use crate::Setup;
use crate::dtype::DType;
use crate::setup::{Checkpointing, Freeze, Parallel};
use crate::tape::{Kind, Tape, Tensor, Why};

/// A wrapped model.
struct Ddp {
    /// Memory for all gradients, which are copied here to be summed.
    buckets: Vec<Tensor>,
    /// Elements of the buffers, which the first GPU sends before each forward, by type.
    buffers: Vec<(DType, u64)>,
    /// True if the graph is searched for unused parameters, for which the outputs are copied (`_DDPSink`).
    finds_unused: bool,
    /// True if the forward before was of a micro-batch whose gradients were summed (`require_forward_param_sync`).
    sends: Cell<bool>,
    /// True while gradients are summed: in the last micro-batch of a step, the others run under `no_sync`.
    sums: Cell<bool>,
}

/// Wraps a model; with `view`, gradients are parts of the buckets once they are summed (`gradient_as_bucket_view`).
///
/// The first step's single bucket (`sys.maxsize`), which is rebuilt in the second step, is not simulated separately:
/// both take the same bytes in total. While NCCL's work holds the old one, both are live; that depends on its watchdog.
pub(super) fn wrap(
    t: &Tape,
    (trainer, params): (&mut Trainer, &[Tensor]),
    (setup, parallel): (&Setup, &Parallel),
    view: bool,
) {
    let trained: Vec<Tensor> = params.iter().filter(|param| param.requires_grad()).cloned().collect();
    let assigned = assigned(&trained, parallel.bucket << 20);
    let buckets: Vec<Tensor> = assigned.iter().map(|bucket| memory(t, bucket)).collect();
    let ddp = Rc::new(Ddp {
        buckets,
        buffers: buffers(t),
        finds_unused: finds_unused(setup),
        sends: Cell::new(true),
        sums: Cell::new(true),
    });
    if view {
        let hooked = ddp.clone();
        t.on_gradient(Rc::new(move |t: &Tape, param: &Tensor| {
            let of = trained.iter().position(|known| known.is(param));
            let bucket = of.and_then(|of| assigned.iter().position(|bucket| bucket.params.contains(&of)));
            if let Some(bucket) = bucket.filter(|_| hooked.sums.get()) {
                t.move_gradient(param, &hooked.buckets[bucket]);
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

/// A bucket.
struct Bucket {
    dtype: DType,
    elements: u64,
    params: Vec<usize>,
}

/// `compute_bucket_assignment_by_size` over the parameters in the order in which backward reaches them, last first: a
/// bucket is full once it holds `cap` bytes; each type has its own.
fn assigned(trained: &[Tensor], cap: u64) -> Vec<Bucket> {
    let mut open: Vec<Bucket> = Vec::new();
    let mut full: Vec<Bucket> = Vec::new();
    for (of, param) in trained.iter().enumerate().rev() {
        let dtype = param.dtype();
        let at = open.iter().position(|bucket| bucket.dtype == dtype).unwrap_or_else(|| {
            open.push(Bucket {
                dtype,
                elements: 0,
                params: Vec::new(),
            });
            open.len() - 1
        });
        open[at].elements += param.numel();
        open[at].params.push(of);
        if open[at].elements * dtype.width() >= cap {
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

/// Elements of a model's buffers by type, where there are several of one.
fn buffers(t: &Tape) -> Vec<(DType, u64)> {
    let mut sums: Vec<(DType, u64, u64)> = Vec::new();
    t.read_log(|log| {
        let all = (0..log.allocations.len()).map(|id| &log.allocations[id]);
        // The model that DPO compares with is not wrapped.
        let own = all.filter(|of| of.why == Why::Buffer && !log.path(of.scope).starts_with("ref_model"));
        for allocation in own {
            let elements = allocation.shape.numel();
            match sums.iter_mut().find(|(dtype, _, _)| *dtype == allocation.dtype) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + elements, *count + 1),
                None => sums.push((allocation.dtype, elements, 1)),
            }
        }
    });
    let several = sums.into_iter().filter(|(_, _, count)| *count > 1);
    several.map(|(dtype, sum, _)| (dtype, sum)).collect()
}

impl Wrapper for Ddp {
    fn begin(&self, is_last: bool) {
        self.sums.set(is_last);
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
    fn handed_out(&self, t: &Tape, loss: &Tensor, held: Vec<Tensor>) -> Vec<Tensor> {
        if !self.finds_unused {
            return held;
        }
        let outputs = std::iter::once(loss).chain(&held);
        let copies = outputs.map(|x| t.no_grad(|| t.empty_like(x, x.dtype(), "copy of an output")));
        let copies: Vec<Tensor> = copies.collect();
        drop(held);
        copies
    }
}
