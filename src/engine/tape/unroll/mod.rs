//! Unrolls a pass that ran with deduplicated layers: writes the events that it would have recorded if every layer had
//! run, with storages and modules of their own.
//!
//! A layer that stands for others has their kind and their neighbours' kinds, so each of the others makes and frees its
//! storages in the same places; those of the layer before and after it are those of its own neighbours. What does not
//! follow from that is refused, and the run is recorded again with every layer.

mod leaves;
mod parts;
mod places;
mod whole;
mod write;

use super::core::Tape;
use super::follow::Mark;
use super::stack::{Deduplication, Position};
use super::tensor::Tensor;

/// A pass that runs with deduplicated layers.
#[derive(Debug)]
pub struct Rolled {
    begin: Position,
    /// True if another thread was sent events until then.
    is_followed: bool,
    write: Write,
}

/// Positions in a pass before and after it was unrolled.
#[derive(Debug)]
pub struct Unrolled {
    /// Ranges of events and items that only moved: begin and end before, begin now.
    events: Vec<[usize; 3]>,
    items: Vec<[usize; 3]>,
}

/// Tensors that outlive a pass: trained parameters, whose gradients it may have made, and others that it made.
type Left<'a> = (&'a [Tensor], &'a [Tensor]);

/// Writes a whole pass that began at a position and ran with these deduplicated layers.
type Write = fn(&Tape, Position, Deduplication, Left<'_>, &[(Mark, usize)]) -> Option<Unrolled>;

/// The code that writes whole passes. A frontend that is split into parts loads it with models that are loaded.
#[derive(Debug, Clone, Copy)]
pub struct Unroller(Write);

impl Unroller {
    /// Whatever refers to this constant contains the code.
    pub const OWN: Self = Self(whole::write);

    /// The code, which is linked in.
    #[cfg(not(feature = "lazy-models"))]
    fn get() -> Option<Self> {
        Some(Self::OWN)
    }

    /// The code, if the frontend provided it.
    #[cfg(feature = "lazy-models")]
    fn get() -> Option<Self> {
        PROVIDED.get().copied()
    }

    /// Makes the code available from now on.
    #[cfg(feature = "lazy-models")]
    pub fn provide(self) {
        // A second call provides the same function, so its error is ignored.
        PROVIDED.set(self).ok();
    }
}

#[cfg(feature = "lazy-models")]
static PROVIDED: std::sync::OnceLock<Unroller> = std::sync::OnceLock::new();

impl Rolled {
    /// Position at which the pass begins.
    pub fn begin(&self) -> Position {
        self.begin
    }
}

impl Unrolled {
    /// Position of an event; `None` if it is in a layer.
    pub fn event(&self, at: usize) -> Option<usize> {
        moved(&self.events, at)
    }

    /// Position of a work item; `None` if it is in a layer.
    pub fn item(&self, at: usize) -> Option<usize> {
        moved(&self.items, at)
    }
}

fn moved(ranges: &[[usize; 3]], at: usize) -> Option<usize> {
    let range = ranges.iter().find(|[from, to, _]| (*from..=*to).contains(&at));
    range.map(|[from, _, now]| now + at - from)
}

impl Tape {
    /// Deduplicates the layers of the pass that begins here, unless a library is told of modules and gradients as they
    /// come, or the layers are deduplicated already.
    pub fn roll(&self) -> Option<Rolled> {
        // DDP, DeepSpeed and FSDP act at each module or gradient, and what they do depends on the layers before: a
        // bucket fills up in some layer, a prefetch reaches into the next. One layer then does not stand for another.
        let is_heard = self.watcher().is_some() || self.0.gradient_hook.borrow().is_some();
        if is_heard || self.0.deduplication.borrow().is_some() {
            return None;
        }
        let Unroller(write) = Unroller::get()?;
        let is_followed = self.pause_follower();
        self.start_deduplication(Deduplication::new(false, false));
        Some(Rolled {
            begin: self.position(),
            is_followed,
            write,
        })
    }

    /// Writes what the pass would have recorded with every layer. `leaves` are the trained parameters, and `live` other
    /// tensors that the pass made and that are still live; marks are positions among events. On `None` the recording is
    /// of no use any more: [`Tape::has_unlike_layers`].
    pub fn unroll(
        &self,
        Rolled {
            begin,
            is_followed,
            write,
        }: Rolled,
        (leaves, live): (&[Tensor], &[Tensor]),
        marks: &[(Mark, usize)],
    ) -> Option<Unrolled> {
        if is_followed {
            self.resume_follower();
        }
        let unrolled = write(self, begin, self.take_deduplication(), (leaves, live), marks);
        if unrolled.is_none() {
            self.refuse_unlike_layers();
        }
        unrolled
    }

    /// Notes that the recording is of no use.
    pub fn refuse_unlike_layers(&self) {
        self.0.unlike_layers.set(true);
        self.unfollow();
    }

    /// Returns true if a pass could not be unrolled: its recording ends there.
    pub fn has_unlike_layers(&self) -> bool {
        self.0.unlike_layers.get()
    }

    /// Makes an empty tape with this one's settings; `works` if it records kernels and host ops.
    pub fn with_same_settings(&self, works: bool) -> Self {
        let other = Self::roomy(self.gpu());
        other.set_group(self.group());
        other.set_stage(self.stage());
        other.set_in_launch(self.is_in_launch());
        other.0.sums_segments.set(self.0.sums_segments.get());
        if works {
            other.write_work();
        }
        other
    }
}
