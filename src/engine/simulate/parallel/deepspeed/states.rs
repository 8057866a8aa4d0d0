//! ZeRO stages 1 and 2: states, and gradients too, of a part of the parameters (`DeepSpeedZeroOptimizer`).

use std::cell::Cell;
use std::rc::Rc;

use super::super::super::engine::EngineOptimizer;
use super::buckets::{Buckets, Form};
use super::group::{Group, Groups, master, part_of};
use super::host::Host;
use super::values;
use crate::Setup;
use crate::dtype::DType;
use crate::optim::Optimizer;
use crate::setup::{Parallel, Strategy};
use crate::tape::log::StorageId;
use crate::tape::work::Beside;
use crate::tape::{Tape, Tensor};

/// The optimizer around the client's.
pub(super) struct States {
    groups: Groups,
    /// All parameters of each group.
    flat: Vec<Tensor>,
    /// This GPU's part of each group in fp32, with the client's optimizer of it; none if the host has them.
    masters: Vec<(Tensor, Optimizer)>,
    buckets: Buckets,
    /// This GPU's gradients of each group, summed over micro-batches; none before a step's first.
    gradients: Vec<Option<Vec<Tensor>>>,
    /// Name of the update in the host's pace.
    update: &'static str,
    /// Norm of the last step's gradients, which the engine keeps.
    norm: Option<Tensor>,
    /// True if each gradient is reduced as it is made.
    reduces_at_once: bool,
    clips: bool,
    is_boundary: Rc<Cell<bool>>,
}

impl States {
    /// Reduces what waits at the end of a backward.
    fn reduce_rest(&mut self, t: &Tape) {
        self.buckets.is_boundary = self.is_boundary.get();
        if !self.reduces_at_once {
            for at in 0..self.groups.params.len() {
                if self.groups.params[at].grad().is_some() {
                    self.buckets.put(t, &self.groups, at);
                }
            }
        }
        self.buckets.reduce(t, &self.groups);
        self.buckets.settle(t);
        self.buckets.drop_others(&self.groups);
    }

    pub fn new(
        t: &Tape,
        client: &Optimizer,
        (setup, parallel): (&Setup, &Parallel),
        is_boundary: Rc<Cell<bool>>,
    ) -> Self {
        let (world, zero) = (parallel.world, parallel.zero);
        let groups = Groups::new(client.groups(), world, zero.round_robin_gradients);
        let offloads = parallel.offload.is_any();
        let (mut flat, mut masters) = (Vec::new(), Vec::new());
        for group in &groups.list {
            t.empty_cache();
            flat.push(groups.flatten(t, group, world));
            let part = (groups.dtype() != DType::F32).then(|| t.empty([group.part], groups.dtype(), "this GPU's part"));
            let made = (!offloads).then(|| t.require_grad(&master(t, group.part)));
            drop(part);
            masters.extend(made.map(|master| {
                let optimizer = client.over([vec![master.clone()], Vec::new()]);
                (master, optimizer)
            }));
        }
        let host = offloads.then(|| Host::new(t, &groups));
        if !offloads {
            let zeros = groups.list.iter();
            let zeros = zeros.map(|group| t.empty([group.part], DType::F32, "zeros for gradients"));
            drop(zeros.collect::<Vec<Tensor>>());
        }
        let gradients = parallel.strategy == Strategy::Deepspeed2;
        let form = Form {
            size: zero.reduce_bucket_size,
            overlaps: parallel.overlaps(),
            is_contiguous: zero.contiguous_gradients || offloads,
            scatters: zero.reduce_scatter,
            drops: gradients,
        };
        let mut buckets = Buckets::new(form, groups.params.len());
        buckets.host = host;
        Self {
            buckets,
            gradients: vec![None; groups.list.len()],
            update: client.on_host(DType::F32),
            norm: None,
            reduces_at_once: gradients || parallel.overlaps(),
            clips: setup.clip,
            is_boundary,
            groups,
            flat,
            masters,
        }
    }

    /// `all_gather_dp_groups`: gathers the updated parameters of each group.
    fn gather(&self, t: &Tape) {
        if self.groups.world > 1 {
            let bytes = |group: &Group| group.part * self.groups.world * self.groups.dtype().width();
            let groups = self.groups.list.iter();
            groups.for_each(|group| t.collective_at_once(Beside::AllGather, bytes(group)));
        }
    }

    /// Notes what the host does of an update: it scales gradients, updates, and narrows parameters, which go to the GPU.
    fn update_on_host(&self, t: &Tape) {
        // It reads norms first.
        t.wait();
        let passes = if self.clips { 2 } else { 1 };
        for group in &self.groups.list {
            t.on_host("pass host element", passes * group.part);
            t.on_host(self.update, group.part);
            t.collective_at_once(Beside::ToDevice, group.part * self.groups.dtype().width());
        }
        self.gather(t);
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
    fn before_forward(&mut self, t: &Tape, _: bool) {
        t.hook("deepspeed forward", 1);
    }

    fn gradient(&mut self, t: &Tape, param: &Tensor) {
        let Some(at) = self.groups.index(param) else { return };
        let puts = self.reduces_at_once && self.reduces();
        let (buckets, groups) = (&mut self.buckets, &self.groups);
        t.in_hook(|| buckets.prepare(t, groups));
        buckets.is_boundary = self.is_boundary.get();
        if puts {
            t.in_hook(|| buckets.put(t, groups, at));
        }
    }

    fn after_backward(&mut self, t: &Tape) {
        if !self.reduces() {
            return;
        }
        t.hook("deepspeed backward", 1);
        t.in_hook(|| self.reduce_rest(t));
        if self.buckets.host.is_some() {
            return self.buckets.release(&self.groups);
        }
        // `avg_new`, which lives until the next group's.
        let mut new: Vec<Tensor> = Vec::new();
        for (group, summed) in self.groups.list.iter().zip(&mut self.gradients) {
            let made = self.buckets.own_gradients(t, &self.groups, group);
            let summed = match summed {
                Some(summed) => {
                    new = made;
                    summed
                }
                None => summed.insert(made),
            };
            if self.is_boundary.get() {
                let kept: u64 = self.groups.own_of(group).map(|at| self.groups.own_elements(at)).sum();
                if kept < group.part {
                    summed.push(t.empty(
                        [group.part - kept],
                        self.groups.dtype(),
                        "zeros after the last gradient",
                    ));
                }
            }
        }
        self.buckets.release(&self.groups);
        drop(new);
    }

    fn step(&mut self, t: &Tape) {
        values::begin_step(t, "deepspeed", self.groups.params.iter());
        if let Some(host) = &mut self.buckets.host {
            host.step(t, self.groups.list.len());
            return self.update_on_host(t);
        }
        let mut parts: Vec<Vec<Tensor>> = Vec::new();
        for (group, gradients) in self.groups.list.iter().zip(&mut self.gradients) {
            let mut of_group = gradients.take().unwrap_or_default();
            for (part, at) in of_group.iter_mut().zip(self.groups.own_of(group)) {
                *part = part_of(t, part, self.groups.own_elements(at));
            }
            parts.push(of_group);
        }
        // `check_grad_overflow`
        if self.groups.dtype() != DType::F32 {
            self.check_overflow(t, &parts.concat());
        }
        let mut of_groups = Vec::new();
        for (group, parts) in self.groups.list.iter().zip(&parts) {
            let own = parts.iter().take(self.groups.own_of(group).count());
            let norms = own.map(|part| values::double_norm(t, part)).collect();
            of_groups.push(values::norm_of_group(t, norms));
        }
        let total = values::combined(t, of_groups.len() as u64);
        drop(of_groups);
        drop(values::is_invalid(t));
        // The engine holds the last step's until this one is done.
        let last = self.norm.replace(t.empty([], DType::F32, "norm / scale"));
        let of_group = self.groups.list.iter().zip(parts);
        for ((group, parts), (master, optimizer)) in of_group.zip(&mut self.masters) {
            let flat = (parts.len() > 1).then(|| t.empty([group.part], self.groups.dtype(), "this GPU's gradients"));
            values::hold(t, master, (flat.as_ref(), &parts));
            drop((flat, parts));
            if self.clips {
                values::clip(t);
                values::scale_in_place(t, group.part);
            }
            optimizer.step(t);
            values::narrow(t, group.part, self.groups.dtype());
            master.clear_grad();
        }
        self.gather(t);
        drop((total, last));
    }

    fn streams(&self) -> Vec<(StorageId, u32)> {
        self.buckets.streams.clone()
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        self.flat.iter().map(|flat| (flat.clone(), true)).collect()
    }
}
