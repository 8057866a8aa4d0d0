//! ZeRO stages 1 and 2: states, and gradients too, of a part of the parameters (`DeepSpeedZeroOptimizer`).

use std::cell::Cell;
use std::rc::Rc;

use super::super::super::engine::EngineOptimizer;
use super::buckets::{Buckets, Form};
use super::group::{Group, master, part_of};
use super::host::Host;
use super::values;
use crate::Setup;
use crate::dtype::DType;
use crate::optim::Optimizer;
use crate::setup::{Parallel, Strategy};
use crate::tape::log::StorageId;
use crate::tape::{Tape, Tensor};

/// The optimizer around the client's.
pub(super) struct States {
    group: Group,
    /// All parameters.
    flat: Tensor,
    /// This GPU's part in fp32, with the client's optimizer; `None` if the host has them.
    master: Option<(Tensor, Optimizer)>,
    buckets: Buckets,
    /// This GPU's gradients, summed over micro-batches.
    gradients: Option<Vec<Tensor>>,
    /// Norm of the last step's gradients, which the engine keeps.
    norm: Option<Tensor>,
    /// True if each gradient is reduced as it is made.
    reduces_at_once: bool,
    clips: bool,
    is_boundary: Rc<Cell<bool>>,
}

impl States {
    pub fn new(
        t: &Tape,
        params: &[Tensor],
        (setup, parallel): (&Setup, &Parallel),
        is_boundary: Rc<Cell<bool>>,
    ) -> Self {
        let (world, zero) = (parallel.world, parallel.zero);
        let trained: Vec<Tensor> = params.iter().filter(|param| param.requires_grad()).cloned().collect();
        let group = Group::new(trained, world, zero.round_robin_gradients);
        let flat = group.flatten(t, world);
        let part = t.empty([group.part], DType::Bf16, "this GPU's part");
        let offloads = parallel.offload.is_any();
        let master = (!offloads).then(|| t.require_grad(&master(t, group.part)));
        drop(part);
        let host = offloads.then(|| Host::new(t, &group));
        if master.is_some() {
            drop(t.empty([group.part], DType::F32, "zeros for gradients"));
        }
        let gradients = parallel.strategy == Strategy::Deepspeed2;
        let form = Form {
            size: zero.reduce_bucket_size,
            overlaps: parallel.overlaps(),
            scatters: zero.reduce_scatter,
            drops: gradients,
        };
        let mut buckets = Buckets::new(form, group.params.len());
        buckets.host = host;
        Self {
            buckets,
            gradients: None,
            norm: None,
            reduces_at_once: gradients || parallel.overlaps(),
            clips: setup.clip,
            is_boundary,
            group,
            flat,
            master: master.map(|master| {
                let optimizer = Optimizer::new(setup.optim, std::slice::from_ref(&master));
                (master, optimizer)
            }),
        }
    }

    /// Returns true if gradients are reduced after this micro-batch.
    fn reduces(&self) -> bool {
        self.buckets.drops || self.is_boundary.get()
    }

    /// `check_overflow`: counts gradients that are not finite.
    fn check_overflow(&self, t: &Tape, gradients: &[Tensor]) {
        let count = t.empty([1], DType::F32, "count of invalid gradients");
        gradients
            .iter()
            .for_each(|gradient| drop(values::has_inf_or_nan(t, gradient)));
        let any = t.empty([1], DType::Bool, "are any invalid");
        drop(count);
        let byte = t.empty([1], DType::U8, "overflow");
        drop(any);
        drop(byte);
    }
}

impl EngineOptimizer for States {
    fn gradient(&mut self, t: &Tape, param: &Tensor) {
        let Some(at) = self.group.index(param) else { return };
        self.buckets.prepare(t);
        self.buckets.is_boundary = self.is_boundary.get();
        if self.reduces_at_once && self.reduces() {
            self.buckets.put(t, &self.group, at);
        }
    }

    fn after_backward(&mut self, t: &Tape) {
        if !self.reduces() {
            return;
        }
        self.buckets.is_boundary = self.is_boundary.get();
        if !self.reduces_at_once {
            for at in 0..self.group.params.len() {
                if self.group.params[at].grad().is_some() {
                    self.buckets.put(t, &self.group, at);
                }
            }
        }
        self.buckets.reduce(t, &self.group);
        if self.buckets.host.is_some() {
            return self.buckets.release(&self.group);
        }
        let new = self.buckets.own_gradients(t, &self.group);
        let summed = self.gradients.get_or_insert_with(|| new.clone());
        if self.is_boundary.get() {
            let kept: u64 = self.group.own().map(|at| self.group.own_elements(at)).sum();
            if kept < self.group.part {
                summed.push(t.empty([self.group.part - kept], DType::Bf16, "zeros after the last gradient"));
            }
        }
        self.buckets.release(&self.group);
        drop(new);
    }

    fn step(&mut self, t: &Tape) {
        if let Some(host) = &mut self.buckets.host {
            return host.step(t);
        }
        let own: Vec<usize> = self.group.own().collect();
        let gradients: Vec<Tensor> = self.gradients.take().unwrap_or_default();
        let mut parts: Vec<Tensor> = gradients;
        for (part, &at) in parts.iter_mut().zip(&own) {
            *part = part_of(t, part, self.group.own_elements(at));
        }
        self.check_overflow(t, &parts);
        let norms = parts
            .iter()
            .take(own.len())
            .map(|part| values::double_norm(t, part))
            .collect();
        let of_group = values::norm_of_group(t, norms);
        let total = values::combined(t, 1);
        drop(of_group);
        drop(values::is_invalid(t));
        // The engine holds the last step's until this one is done.
        let last = self.norm.replace(t.empty([], DType::F32, "norm / scale"));
        let flat = (parts.len() > 1).then(|| t.empty([self.group.part], DType::Bf16, "this GPU's gradients"));
        let Some((master, optimizer)) = &mut self.master else {
            return;
        };
        master.hold_gradient(t);
        drop((flat, parts));
        if self.clips {
            values::clip(t);
        }
        optimizer.step(t);
        master.clear_grad();
        drop((total, last));
    }

    fn streams(&self) -> Vec<(StorageId, u32)> {
        self.buckets.streams.clone()
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        vec![(self.flat.clone(), true)]
    }
}
