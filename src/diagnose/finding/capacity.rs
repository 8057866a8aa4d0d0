//! Finds why a request failed, from the numbers in its out-of-memory error.

use super::known::Known;
use super::{Action, Cause, Confidence, Context, Finding, Holder, shapes};
use crate::oom::{Asker, Backend, OomMessage, Site};
use vramscope_engine::units::Bytes;

/// Upper bound of what CUDA's context, kernels and NCCL take outside PyTorch's allocator. More than this means another
/// process, or a library that allocates its own memory.
const OUTSIDE: Bytes = Bytes::gib(2);

/// Share of fragmentation above which it needs action (course row `9.stats`).
pub const ACT: f64 = 0.2;

/// Findings that one out-of-memory error supports.
pub fn findings(message: &OomMessage, context: &Context, known: &Known<'_>) -> Vec<Finding> {
    let request = message.request.map(|amount| amount.bytes);
    match message.asker {
        Asker::Host => {
            return vec![Finding::new(
                Confidence::Cause,
                Cause::HostMemory { request },
                &[Action::SaveHostMemory],
            )];
        }
        Asker::Allocator(_) => {}
        asker => {
            let steps = [Action::LeaveRoom, Action::StopOthers, Action::SmallerBatch];
            return vec![Finding::new(
                Confidence::Cause,
                Cause::OutsideTheCache { asker },
                &steps,
            )];
        }
    }
    if message.total.is_none() && request.is_none() && message.allowed.is_none() {
        return vec![Finding::new(
            Confidence::Note,
            Cause::NoNumbers,
            &[Action::WholeMessage, Action::Record],
        )];
    }
    let case = Case { message, request };
    let others = case.others();
    let held_by_others = others
        .as_ref()
        .is_some_and(|finding| finding.confidence == Confidence::Cause);
    let mut found: Vec<Finding> = [case.limit(), others, case.refused(), case.fragmentation(held_by_others)]
        .into_iter()
        .flatten()
        .collect();
    found.extend(case.capacity(&found));
    found.extend(case.private_pools());
    // If other processes hold the card, the tensor that asked last is not to blame.
    if !held_by_others {
        found.extend(case.site());
        found.extend(shapes::findings(message, context, known.shape.as_ref()));
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
        let confidence = if is_mps || was_room {
            Confidence::Cause
        } else {
            Confidence::Note
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
            confidence,
            cause,
            &[Action::RaiseLimit, Action::SmallerBatch, Action::Checkpoint],
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
        let confidence = match (is_sure, would_do, is_much) {
            (true, true, true) => Confidence::Cause,
            (true, true, false) | (false, true, true) => Confidence::Likely,
            (false, true, false) => Confidence::Possible,
            (_, false, _) => Confidence::Note,
        };
        let cause = Cause::OtherProcesses {
            total: self.total(),
            held,
            own,
            processes,
        };
        Some(Finding::new(
            confidence,
            cause,
            &[Action::StopOthers, Action::OtherDevice],
        ))
    }

    fn refused(&self) -> Option<Finding> {
        let (request, free) = (self.request?, self.free()?);
        if self.message.allowed.is_some() || free <= request {
            return None;
        }
        let cause = Cause::RefusedThoughFree { request, free };
        Some(Finding::new(
            Confidence::Cause,
            cause,
            &[Action::CheckLimits, Action::StopOthers],
        ))
    }

    fn fragmentation(&self, held_by_others: bool) -> Option<Finding> {
        let reserved = self.message.reserved_in_all()?.bytes;
        let unallocated = self.message.unallocated_in_all()?.bytes;
        let share = share(unallocated, reserved);
        let free = self.free();
        // Pieces matter where there is much of them, and more than what was asked for.
        let is_little =
            unallocated.get() < reserved.get() / 20 || self.request.is_some_and(|request| unallocated < request);
        // With expandable segments, unallocated pages and free memory could serve the request together.
        let would_serve = matches!((self.request, free), (Some(request), Some(free)) if unallocated + free >= request && free < request);
        let confidence = match (share >= ACT, would_serve) {
            (true, true) => Confidence::Cause,
            (false, true) if held_by_others => Confidence::RuledOut,
            (false, true) if is_little => Confidence::RuledOut,
            (false, true) => Confidence::Likely,
            (true, false) => Confidence::Possible,
            (false, false) => Confidence::RuledOut,
        };
        let cause = Cause::Fragmentation {
            reserved,
            unallocated,
            share,
            request: self.request.filter(|_| !held_by_others),
            free,
        };
        let steps: &[Action] = match confidence {
            Confidence::RuledOut => &[],
            _ => &[Action::ExpandableSegments, Action::GroupByLength, Action::EmptyCache],
        };
        Some(Finding::new(confidence, cause, steps))
    }

    fn capacity(&self, found: &[Finding]) -> Option<Finding> {
        self.total()?;
        let is_explained = |confidence| found.iter().any(|finding| finding.confidence == confidence);
        let confidence = if is_explained(Confidence::Cause) {
            let other = |finding: &Finding| matches!(finding.cause, Cause::Fragmentation { .. } | Cause::Limit { .. });
            if !found
                .iter()
                .any(|finding| finding.confidence == Confidence::Cause && other(finding))
            {
                return None;
            }
            Confidence::Possible
        } else {
            // That it is full is what the error says, and no cause: what filled it is one.
            Confidence::Likely
        };
        let cause = Cause::OutOfCapacity {
            devices: self.message.devices.clone(),
            request: self.request,
            total: self.total(),
            free: self.free(),
            allocated: self.message.allocated.map(|amount| amount.bytes),
            reserved: self.message.reserved_in_all().map(|amount| amount.bytes),
        };
        let mut steps = vec![
            Action::SmallerBatch,
            Action::Checkpoint,
            Action::Shorter,
            Action::SmallerOptimizer,
            Action::Adapters,
        ];
        match self.message.site {
            Some(Site::OptimizerStates | Site::Optimizer) => steps.swap(0, 3),
            Some(Site::Load) => steps = vec![Action::Adapters, Action::OtherDevice],
            _ => {}
        }
        steps.push(Action::NameSetup);
        Some(Finding::new(confidence, cause, &steps))
    }

    fn private_pools(&self) -> Option<Finding> {
        let bytes = self.message.private_pools?.bytes;
        let allocated = self.message.allocated.map(|amount| amount.bytes);
        let is_much = allocated.is_none_or(|allocated| bytes.get() >= allocated.get() / 10);
        let confidence = if is_much {
            Confidence::Possible
        } else {
            Confidence::Note
        };
        (bytes > Bytes::mib(64)).then(|| {
            Finding::new(
                confidence,
                Cause::PrivatePools { bytes, allocated },
                &[Action::FewerGraphs],
            )
        })
    }

    fn site(&self) -> Option<Finding> {
        let site = self.message.site?;
        let steps: &[Action] = match site {
            Site::OptimizerStates | Site::Optimizer => &[Action::SmallerOptimizer, Action::Adapters],
            Site::Loss => &[Action::FusedLoss, Action::Shorter, Action::SmallerBatch],
            Site::Attention => &[Action::FusedAttention, Action::Shorter],
            Site::Vision => &[Action::Shorter, Action::Checkpoint],
            Site::Load => &[Action::Adapters, Action::OtherDevice],
            Site::Forward | Site::Backward => &[Action::Checkpoint, Action::SmallerBatch],
        };
        Some(Finding::new(Confidence::Likely, Cause::Site(site), steps))
    }
}

/// A part of a whole, from 0 to 1; 0 if the whole is zero.
pub fn share(part: Bytes, whole: Bytes) -> f64 {
    match whole {
        Bytes::ZERO => 0.0,
        whole => part.get() as f64 / whole.get() as f64,
    }
}
