//! Rewrites a recording for FSDP2: `fully_shard` of each block and of the root.

pub(super) mod flat;
pub(super) mod hooks;
mod pass;
pub(super) mod plan;

use super::super::steps::{Recording, Step, StepMarks};
use super::rewrite::{Piece, allocations, frees, shard};
use super::units::{ROOT, Unit, Units};
use crate::dtype::DType;
use crate::setup::{Parallel, Precision, Strategy};
use crate::tape::Kind;
use crate::tape::log::{Event, Log, ScopeId, StorageId};
use pass::Pass;

/// Rewrites a step of a single GPU as one of several GPUs runs it.
///
/// - It keeps a shard of each parameter (`FSDPParam._init_sharded_param`); under CPU offload none.
/// - A unit gathers its parameters when its forward begins: into one buffer, and from it into the parameters. In
///   forward the buffer lives until the next unit's (`AllGatherState`); in backward it is freed at once, and the buffer
///   of the unit before is prefetched (`_backward_prefetch`).
/// - After its forward a unit frees its parameters if it reshards; after its backward it always does. Then its
///   gradients are copied into the input of a reduce-scatter, which lives until the next unit's, and freed
///   (`foreach_reduce`); the output holds the shards of the gradients until `zero_grad`.
/// - The optimizer sees shards.
pub(super) fn rewrite(mut recording: Recording, precision: Precision, parallel: &Parallel) -> Recording {
    let units = Units::of(&recording.log);
    let mut sharded = Sharded {
        own: precision.weights(),
        parameters: vec![Vec::new(); units.count],
        units,
        parallel: *parallel,
    };
    sharded.shard_model(&mut recording);
    let (first, steady) = (recording.first, recording.steady);
    sharded.shard_updates(&mut recording.log, [&first, &steady]);
    recording.first = sharded.step(&mut recording.log, &mut recording.streams, &first);
    recording.steady = sharded.step(&mut recording.log, &mut recording.streams, &steady);
    recording
}

/// Streams whose memory the allocator keeps apart: that of the copy into a gather's buffer, and that of a
/// reduce-scatter.
const GATHER: u32 = 1;
const REDUCE: u32 = 2;

struct Sharded {
    units: Units,
    parallel: Parallel,
    /// Type of the shards.
    own: DType,
    /// Parameters of each unit.
    parameters: Vec<Vec<Parameter>>,
}

#[derive(Clone, Copy)]
struct Parameter {
    /// Elements of the largest shard.
    shard: u64,
    /// Type of the gathered parameter.
    dtype: DType,
    scope: ScopeId,
}

impl Sharded {
    /// Shards the model once all of it is made. Each block, and then the root, allocates its shards and frees the whole
    /// parameters, from whose cached memory the shards after it are served.
    fn shard_model(&mut self, recording: &mut Recording) {
        let log = &mut recording.log;
        let mut of_unit = vec![(Vec::new(), Vec::new()); self.units.count];
        for (id, _) in &mut recording.parameters {
            let whole = *id;
            let allocation = log.allocations[*id as usize];
            let parameter = Parameter {
                shard: shard(&allocation.shape, self.parallel.world),
                dtype: allocation.dtype,
                scope: allocation.scope,
            };
            let unit = self.units.unit(allocation.scope);
            self.parameters[unit].push(parameter);
            let shard = Piece {
                elements: parameter.shard,
                dtype: self.own,
                name: allocation.name,
                kind: Kind::Weight,
                scope: allocation.scope,
            };
            *id = shard.describe(log);
            of_unit[unit].0.push(*id);
            of_unit[unit].1.push(whole);
        }
        // The root, which is the first unit, comes last.
        of_unit.rotate_left(1);
        for (shards, whole) in of_unit {
            if self.parallel.offload.is_any() {
                let copied = shards.iter().flat_map(|&id| [Event::alloc(id), Event::free(id)]);
                recording.build.extend(copied);
            } else {
                recording.build.extend(allocations(&shards));
            }
            recording.build.extend(frees(&whole));
        }
        recording.made = recording.build.len();
        if self.parallel.offload.is_any() {
            recording.parameters.clear();
        }
    }

    /// Shrinks the states and temporaries of updates to shards, in the shards' type.
    fn shard_updates(&self, log: &mut Log, steps: [&Step; 2]) {
        let mut done = vec![false; log.allocations.len()];
        for step in steps {
            for event in &step.events[step.marks.after_backward..step.marks.after_optimizer] {
                let id = event.storage();
                if !event.is_alloc() || std::mem::replace(&mut done[id as usize], true) {
                    continue;
                }
                let allocation = log.allocations.own(id);
                if !allocation.shape.is_empty() {
                    allocation.dtype = self.own;
                    allocation.bytes = shard(&allocation.shape, self.parallel.world) * self.own.width();
                }
            }
        }
    }

    fn step(&self, log: &mut Log, streams: &mut Vec<(StorageId, u32)>, step: &Step) -> Step {
        let marks = &step.marks;
        let mut pass = Pass::new(self, log, streams);
        pass.events.extend(&step.events[..marks.before_forward]);
        let before_forward = pass.events.len();
        pass.forward(&step.events[marks.before_forward..marks.after_forward]);
        let after_forward = pass.events.len();
        pass.backward(&step.events[marks.after_forward..marks.after_backward]);
        let after_backward = pass.events.len();
        if !self.parallel.offload.is_any() {
            pass.events
                .extend(&step.events[marks.after_backward..marks.after_optimizer]);
        }
        let after_optimizer = pass.events.len();
        pass.zero_grad(&step.events[marks.after_optimizer..]);
        Step {
            events: pass.events,
            marks: StepMarks {
                before_forward,
                after_forward,
                after_backward,
                after_optimizer,
            },
        }
    }
}
