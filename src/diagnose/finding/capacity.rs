//! Finds why a request failed, from the numbers in its out-of-memory error.

use super::{Cause, Context, Finding, Holder, Standing, Step, shapes};
use crate::oom::{Asker, Backend, OomMessage, Site};
use vramscope_engine::units::Bytes;

/// Upper bound of what CUDA's context, kernels and NCCL take outside PyTorch's allocator. More than this means another
/// process, or a library that allocates its own memory.
const OUTSIDE: Bytes = Bytes::gib(2);

/// Share of fragmentation above which it needs action (course row `9.stats`).
pub const ACT: f64 = 0.2;

/// Findings that one out-of-memory error supports.
pub fn findings(message: &OomMessage, context: &Context) -> Vec<Finding> {
    let request = message.request.map(|amount| amount.bytes);
    match message.asker {
        Asker::Host => {
            return vec![Finding::new(
                Standing::Cause,
                Cause::HostMemory { request },
                &[Step::SaveHostMemory],
            )];
        }
        Asker::Allocator(_) => {}
        asker => {
            let steps = [Step::LeaveRoom, Step::StopOthers, Step::SmallerBatch];
            return vec![Finding::new(Standing::Cause, Cause::OutsideTheCache { asker }, &steps)];
        }
    }
    if message.total.is_none() && request.is_none() && message.allowed.is_none() {
        return vec![Finding::new(
            Standing::Note,
            Cause::NoNumbers,
            &[Step::WholeMessage, Step::Record],
        )];
    }
    let case = Case { message, request };
    let others = case.others();
    let held_by_others = others
        .as_ref()
        .is_some_and(|finding| finding.standing == Standing::Cause);
    let mut found: Vec<Finding> = [case.limit(), others, case.refused(), case.fragmentation(held_by_others)]
        .into_iter()
        .flatten()
        .collect();
    found.extend(case.capacity(&found));
    found.extend(case.private_pools());
    // If other processes hold the card, the tensor that asked last is not to blame.
    if !held_by_others {
        found.extend(case.site());
        found.extend(shapes::findings(message, context));
    }
    found
}

struct Case<'a> {
    message: &'a OomMessage,
    request: Option<Bytes>,
}

impl Case<'_> {
    fn free(&self) -> Option<Bytes> {
        self.message.free.map(|amount| amount.bytes)
    }

    fn total(&self) -> Option<Bytes> {
        self.message.total.map(|amount| amount.bytes)
    }

    /// Missing bytes: the request minus the free memory.
    fn missing(&self) -> Option<Bytes> {
        Some(self.request?.saturating_sub(self.free()?))
    }

    fn limit(&self) -> Option<Finding> {
        let message = self.message;
        let allowed = message.allowed?.bytes;
        let is_mps = message.asker == Asker::Allocator(Backend::Mps);
        let was_room = matches!((self.request, self.free()), (Some(request), Some(free)) if free >= request);
        let standing = if is_mps || was_room {
            Standing::Cause
        } else {
            Standing::Note
        };
        let cause = Cause::Limit {
            allowed,
            reserved: message
                .reserved_in_all()
                .or(message.allocated)
                .map(|amount| amount.bytes),
            request: self.request,
            is_mps,
        };
        Some(Finding::new(
            standing,
            cause,
            &[Step::RaiseLimit, Step::SmallerBatch, Step::Checkpoint],
        ))
    }

    fn others(&self) -> Option<Finding> {
        let message = self.message;
        let processes: Vec<Holder> = message
            .others
            .iter()
            .map(|process| Holder {
                pid: process.pid,
                name: None,
                bytes: process.holds.bytes,
            })
            .collect();
        let own = message.own.map(|amount| amount.bytes);
        let listed: Bytes = processes.iter().map(|process| process.bytes).sum();
        // Older messages do not list other processes: the memory that is neither free nor PyTorch's is theirs.
        let known = own.or_else(|| message.reserved_in_all().map(|amount| amount.bytes));
        let unlisted = self
            .total()?
            .saturating_sub(self.free()?)
            .saturating_sub(known.unwrap_or_default());
        let (held, is_sure) = match processes.is_empty() {
            false => (listed, true),
            true if known.is_some() && unlisted > OUTSIDE => (unlisted, false),
            true => return None,
        };
        let would_do = self.missing().is_some_and(|missing| held >= missing);
        let is_much = held.get() >= self.total()?.get() / 4;
        let standing = match (is_sure, would_do, is_much) {
            (true, true, true) => Standing::Cause,
            (true, true, false) | (false, true, true) => Standing::Likely,
            (false, true, false) => Standing::Possible,
            (_, false, _) => Standing::Note,
        };
        let cause = Cause::OtherProcesses {
            total: self.total(),
            held,
            own,
            processes,
        };
        Some(Finding::new(standing, cause, &[Step::StopOthers, Step::OtherDevice]))
    }

    fn refused(&self) -> Option<Finding> {
        let (request, free) = (self.request?, self.free()?);
        if self.message.allowed.is_some() || free <= request {
            return None;
        }
        let cause = Cause::RefusedThoughFree { request, free };
        Some(Finding::new(
            Standing::Cause,
            cause,
            &[Step::CheckLimits, Step::StopOthers],
        ))
    }

    fn fragmentation(&self, held_by_others: bool) -> Option<Finding> {
        let reserved = self.message.reserved_in_all()?.bytes;
        let unallocated = self.message.unallocated_in_all()?.bytes;
        let share = share(unallocated, reserved);
        let free = self.free();
        // With expandable segments, unallocated pages and free memory could serve the request together.
        let would_serve = matches!((self.request, free), (Some(request), Some(free)) if unallocated + free >= request && free < request);
        let standing = match (share >= ACT, would_serve) {
            (true, true) => Standing::Cause,
            (false, true) if held_by_others => Standing::RuledOut,
            (false, true) => Standing::Likely,
            (true, false) => Standing::Possible,
            (false, false) => Standing::RuledOut,
        };
        let cause = Cause::Fragmentation {
            reserved,
            unallocated,
            share,
            request: self.request.filter(|_| !held_by_others),
            free,
        };
        let steps: &[Step] = match standing {
            Standing::RuledOut => &[],
            _ => &[Step::ExpandableSegments, Step::GroupByLength, Step::EmptyCache],
        };
        Some(Finding::new(standing, cause, steps))
    }

    fn capacity(&self, found: &[Finding]) -> Option<Finding> {
        self.total()?;
        let is_explained = |standing| found.iter().any(|finding| finding.standing == standing);
        let standing = if is_explained(Standing::Cause) {
            let other = |finding: &Finding| matches!(finding.cause, Cause::Fragmentation { .. } | Cause::Limit { .. });
            if !found
                .iter()
                .any(|finding| finding.standing == Standing::Cause && other(finding))
            {
                return None;
            }
            Standing::Possible
        } else {
            Standing::Cause
        };
        let cause = Cause::OutOfCapacity {
            request: self.request,
            total: self.total(),
            free: self.free(),
            allocated: self.message.allocated.map(|amount| amount.bytes),
            reserved: self.message.reserved_in_all().map(|amount| amount.bytes),
        };
        let mut steps = vec![
            Step::SmallerBatch,
            Step::Checkpoint,
            Step::SmallerOptimizer,
            Step::Adapters,
        ];
        match self.message.site {
            Some(Site::OptimizerStates | Site::Optimizer) => steps.swap(0, 2),
            Some(Site::Load) => steps = vec![Step::Adapters, Step::OtherDevice],
            _ => {}
        }
        steps.push(Step::NameSetup);
        Some(Finding::new(standing, cause, &steps))
    }

    fn private_pools(&self) -> Option<Finding> {
        let bytes = self.message.private_pools?.bytes;
        let allocated = self.message.allocated.map(|amount| amount.bytes);
        let is_much = allocated.is_none_or(|allocated| bytes.get() >= allocated.get() / 10);
        let standing = if is_much { Standing::Possible } else { Standing::Note };
        (bytes > Bytes::mib(64))
            .then(|| Finding::new(standing, Cause::PrivatePools { bytes, allocated }, &[Step::FewerGraphs]))
    }

    fn site(&self) -> Option<Finding> {
        let site = self.message.site?;
        let steps: &[Step] = match site {
            Site::OptimizerStates | Site::Optimizer => &[Step::SmallerOptimizer, Step::Adapters],
            Site::Loss => &[Step::FusedLoss, Step::Shorter, Step::SmallerBatch],
            Site::Attention => &[Step::FusedAttention, Step::Shorter],
            Site::Vision => &[Step::Shorter, Step::Checkpoint],
            Site::Load => &[Step::Adapters, Step::OtherDevice],
            Site::Forward | Site::Backward => &[Step::Checkpoint, Step::SmallerBatch],
        };
        Some(Finding::new(Standing::Likely, Cause::Site(site), steps))
    }
}

/// A part of a whole, from 0 to 1; 0 if the whole is zero.
pub fn share(part: Bytes, whole: Bytes) -> f64 {
    match whole {
        Bytes::ZERO => 0.0,
        whole => part.get() as f64 / whole.get() as f64,
    }
}
