//! Derives the forms of AdamW and Adam from each other: foreach, fused and for-loop (`torch/optim/adam.py`).
//!
//! All forms keep the same moments. They differ in the step counts, which the fused form keeps on the GPU, and in the
//! temporaries of an update: the foreach form holds the roots of all second moments together, the for-loop form those
//! of one parameter, the fused form none.

use std::collections::BTreeSet;

use super::edit::Edit;
use super::error::RecordingError;
use super::run::RecordedRun;
use crate::dtype::DType;
use crate::optim::{ADAMW, ADAMW_LOOP};
use crate::tape::dims::Dims;
use crate::tape::log::{Allocation, Event, StorageId};
use crate::tape::work::{Class, Launch, WorkItem};
use crate::tape::{Kind, Why};

/// Form of an optimizer's update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptimizerForm {
    /// Operations over lists of all parameters.
    Foreach,
    /// One kernel for each list.
    Fused,
    /// Operations on one parameter after the other.
    ForLoop,
}

impl OptimizerForm {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Foreach, Self::Fused, Self::ForLoop];

    /// Name as PyTorch's documentation writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Foreach => "foreach",
            Self::Fused => "fused",
            Self::ForLoop => "for-loop",
        }
    }

    /// Finds a form by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
}

/// Names of optimizers whose forms are derived.
const OPTIMIZERS: [&str; 2] = ["AdamW", "Adam"];

/// Second moments of the trained parameters, in the optimizer's order, with their first moments.
struct Moments(Vec<[StorageId; 2]>);

impl RecordedRun {
    /// Returns the form of the recorded optimizer, if other forms can be derived: it is AdamW or Adam, updates once in
    /// each step, and leaves only its states behind.
    pub fn optimizer_form(&self) -> Option<OptimizerForm> {
        let name = self.steps.last()?.optimizer_name.as_deref()?;
        let derives = OPTIMIZERS.contains(&name)
            && self
                .steps
                .iter()
                .all(|step| step.optimizers.len() == 1 && self.leaves_states(step.optimizers[0].events()));
        let form = self.form()?;
        let roots = self.roots(self.steps.last()?.optimizers.first()?.events(), form);
        let counts = roots.is_none_or(|roots| roots == self.moments().0.len());
        (derives && counts && !self.moments().0.is_empty()).then_some(form)
    }

    /// Returns the forms of the optimizer that can be derived, the recorded one included.
    pub fn optimizer_forms(&self) -> Vec<OptimizerForm> {
        let Some(recorded) = self.optimizer_form() else {
            return Vec::new();
        };
        let is_scaled = self.is_scaled();
        let derives = |form: &OptimizerForm| {
            let is_fused = [recorded, *form].contains(&OptimizerForm::Fused);
            *form == recorded || !(is_fused && is_scaled)
        };
        OptimizerForm::ALL.into_iter().filter(derives).collect()
    }

    /// Returns the form whose kernels ran in the last update.
    fn form(&self) -> Option<OptimizerForm> {
        let [begin, end] = self.steps.last()?.optimizers.first()?.work();
        let ran = |names: &[&str]| {
            self.work.items()[begin..end].iter().any(|item| match item {
                WorkItem::Launch(launch) => names.contains(&launch.name),
                _ => false,
            })
        };
        match () {
            () if ran(&["foreach_addcdiv"]) => Some(OptimizerForm::Foreach),
            () if ran(&["fused_adamw", "fused_adam"]) => Some(OptimizerForm::Fused),
            () if ran(&["addcdiv"]) => Some(OptimizerForm::ForLoop),
            () => None,
        }
    }

    /// Returns true if a GradScaler checks the gradients, which the fused form does by itself.
    fn is_scaled(&self) -> bool {
        self.work.optimizer().iter().any(|item| match item {
            WorkItem::Launch(launch) => launch.name.starts_with("amp_foreach"),
            _ => false,
        })
    }

    fn kind(&self, id: StorageId) -> Kind {
        self.log.allocations[id as usize].kind
    }

    /// Returns true if everything that is allocated among these events is freed again, states apart.
    fn leaves_states(&self, [begin, end]: [usize; 2]) -> bool {
        let mut left = BTreeSet::new();
        for event in &self.events[begin..end] {
            match event.is_alloc() {
                true if self.kind(event.storage()) == Kind::OptimizerState => {}
                true => _ = left.insert(event.storage()),
                false => _ = left.remove(&event.storage()),
            }
        }
        left.is_empty()
    }

    /// Returns the number of roots of second moments among these events; `None` for a form that makes none.
    fn roots(&self, [begin, end]: [usize; 2], form: OptimizerForm) -> Option<usize> {
        let name = match form {
            OptimizerForm::Foreach => "foreach_sqrt",
            OptimizerForm::ForLoop => "sqrt",
            OptimizerForm::Fused => return None,
        };
        let born = self.events[begin..end].iter().filter(|event| event.is_alloc());
        Some(
            born.filter(|event| self.log.allocations[event.storage() as usize].name == name)
                .count(),
        )
    }

    /// Returns the moments of each trained parameter.
    fn moments(&self) -> Moments {
        let born = self
            .events
            .iter()
            .filter(|event| event.is_alloc())
            .map(|event| event.storage());
        let named =
            |id: &StorageId| (self.kind(*id) == Kind::OptimizerState).then(|| self.log.allocations[*id as usize].name);
        let (mut first, mut moments) = (None, Vec::new());
        for id in born {
            match named(&id) {
                Some("exp_avg") => first = Some(id),
                Some("exp_avg_sq") => moments.extend(first.take().map(|first| [first, id])),
                _ => {}
            }
        }
        Moments(moments)
    }

    /// Replaces the recorded form of the optimizer's update by another one.
    pub(super) fn with_optimizer(mut self, form: OptimizerForm) -> Result<Self, RecordingError> {
        let recorded = self.optimizer_form();
        if recorded == Some(form) {
            return Ok(self);
        }
        if !self.optimizer_forms().contains(&form) {
            return Err(RecordingError::Optimizer(form.name()));
        }
        let moments = self.moments();
        let mut events = Edit::default();
        for number in 0..self.steps.len() {
            let span = self.steps[number].optimizers[0].events();
            let update = self.update(span, form, &moments);
            events.replace(span, update);
        }
        let mut work = Edit::default();
        if let Some(last) = self.steps.last() {
            work.replace(last.optimizers[0].work(), self.kernels(form, &moments));
        }
        self.apply(&events, &work);
        Ok(self)
    }

    /// Applies edits of events and work, and moves all positions in them.
    fn apply(&mut self, events: &Edit<Event>, work: &Edit<WorkItem>) {
        self.events = events.applied(&self.events);
        self.cues.iter_mut().for_each(|(at, _)| *at = events.moved(*at));
        for step in &mut self.steps {
            step.moved(|at| events.moved(at), |at| work.moved(at));
        }
        let marks = self.steps.last().map(|step| step.work).unwrap_or_default();
        let items = work.applied(self.work.items());
        self.work = crate::simulate::Work::of(items, marks);
    }

    /// Returns the events of an update in another form, in place of those that were recorded.
    fn update(&mut self, [begin, end]: [usize; 2], form: OptimizerForm, moments: &Moments) -> Vec<Event> {
        let recorded = self.events[begin..end].to_vec();
        let born: BTreeSet<StorageId> = recorded
            .iter()
            .filter(|event| event.is_alloc())
            .map(|event| event.storage())
            .collect();
        let mut update = Vec::with_capacity(recorded.len());
        for event in recorded {
            let id = event.storage();
            let allocation = self.log.allocations[id as usize];
            match event.is_alloc() {
                true if allocation.kind != Kind::OptimizerState || allocation.why == Why::StepCount => {}
                true => {
                    if form == OptimizerForm::Fused && allocation.name == "exp_avg" {
                        update.push(Event::alloc(self.log.allocations.push(step_count(&allocation))));
                    }
                    update.push(event);
                }
                false if born.contains(&id) => {}
                false => update.push(event),
            }
        }
        match form {
            OptimizerForm::Foreach => {
                let roots: Vec<StorageId> = moments
                    .0
                    .iter()
                    .map(|[_, second]| self.temporary(*second, ROOT))
                    .collect();
                update.extend(roots.iter().map(|&id| Event::alloc(id)));
                // A list is freed from its end.
                update.extend(roots.iter().rev().map(|&id| Event::free(id)));
            }
            OptimizerForm::ForLoop => {
                let mut last = None;
                for [_, second] in &moments.0 {
                    let [root, next] = [ROOT, DENOMINATOR].map(|name| self.temporary(*second, name));
                    update.extend([Event::alloc(root), Event::alloc(next), Event::free(root)]);
                    update.extend(last.replace(next).map(Event::free));
                }
                update.extend(last.map(Event::free));
            }
            OptimizerForm::Fused => {}
        }
        update
    }

    /// Adds a temporary of the size of a second moment.
    fn temporary(&mut self, second: StorageId, name: &'static str) -> StorageId {
        let allocation = Allocation {
            name,
            kind: Kind::Temporary,
            why: Why::InUse,
            ..self.log.allocations[second as usize]
        };
        self.log.allocations.push(allocation)
    }

    /// Returns the kernels of an update.
    fn kernels(&self, form: OptimizerForm, moments: &Moments) -> Vec<WorkItem> {
        let allocations = || {
            moments
                .0
                .iter()
                .map(|[_, second]| &self.log.allocations[*second as usize])
        };
        if form == OptimizerForm::ForLoop {
            let one = |allocation: &Allocation| {
                let (dtype, bytes) = (allocation.dtype, allocation.bytes);
                ADAMW_LOOP
                    .map(|(name, reads, writes)| launch(name, Class::Pointwise, dtype, [reads * bytes, writes * bytes]))
            };
            return allocations().flat_map(one).map(WorkItem::Launch).collect();
        }
        let mut items = Vec::new();
        for dtype in [DType::F32, DType::Bf16, DType::F16] {
            let of_type = || allocations().filter(|allocation| allocation.dtype == dtype);
            let (count, bytes) = (
                of_type().count() as u64,
                of_type().map(|allocation| allocation.bytes).sum::<u64>(),
            );
            if count == 0 {
                continue;
            }
            let (class, passes) = match form {
                OptimizerForm::Fused => (Class::FusedAdamw, &[("fused_adamw", 4, 3)][..]),
                _ => (Class::Foreach, &ADAMW[..]),
            };
            items.extend(passes.iter().map(|&(name, reads, writes)| {
                let launch = launch(name, class, dtype, [reads * bytes, writes * bytes]);
                let extents = [count, bytes / dtype.width(), 0, 0];
                WorkItem::Launch(Launch { extents, ..launch })
            }));
        }
        items
    }
}

/// Names of temporaries, as simulated updates have them.
const ROOT: &str = "sqrt of exp_avg_sq";
const DENOMINATOR: &str = "denominator of the update";

/// Step count of a parameter on the GPU, beside its first moment.
fn step_count(first: &Allocation) -> Allocation {
    Allocation {
        bytes: DType::F32.width(),
        shape: Dims::default(),
        dtype: DType::F32,
        name: "step",
        why: Why::StepCount,
        ..*first
    }
}

fn launch(name: &'static str, class: Class, dtype: DType, [read, written]: [u64; 2]) -> Launch {
    Launch {
        name,
        class,
        dtype,
        gradient: false,
        scope: 0,
        read,
        written,
        extents: [0; 4],
        shared: 1,
    }
}
