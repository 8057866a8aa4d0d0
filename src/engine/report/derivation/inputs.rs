//! Positions and logits that follow from the setup.

use super::{Derivation, Formula, Source, Subject, Term, tensors};
use crate::report::Phase;
use crate::tape::log::StorageId;

impl Subject<'_> {
    /// Positions of a micro-batch: one row if samples are packed, rows as long as the longest sample if they are
    /// padded.
    pub fn positions(self) -> Option<Derivation> {
        if !self.model.takes().text {
            return None;
        }
        let formula = if self.setup.is_packed() {
            let lengths = self.setup.lengths.iter();
            Formula::Sum(lengths.map(|&n| Formula::Number(Term::Positions, n)).collect())
        } else {
            let setup = self.setup.batched();
            Formula::Product(vec![
                Formula::Number(Term::Samples, setup.batch),
                Formula::Number(Term::Positions, setup.seq),
            ])
        };
        Some(Derivation::count(formula, Source::Setup))
    }

    /// Positions of one sample that its images take; `None` if it has no images, or images of different sizes.
    pub fn image_tokens(self) -> Option<Derivation> {
        let tokens = self.model.image_tokens(self.setup);
        let images = match self.model.takes().image_count {
            true => self.model.prepared(self.setup).images,
            false => 1,
        };
        let each = tokens
            .checked_div(images)
            .filter(|each| each * images == tokens && tokens > 0)?;
        let formula = Formula::Product(vec![
            Formula::Number(Term::Images, images),
            Formula::Number(Term::TokensPerImage, each),
        ]);
        Some(Derivation::count(formula, Source::Config))
    }

    /// Output of the head's product in forward.
    pub fn logits(self) -> Option<Derivation> {
        let recorded = self.report.timeline.recorded();
        let id = self.report.timeline.logits()?;
        let (allocation, block) = (&recorded.log.allocations[id as usize], recorded.block_bytes.of(id));
        let formula = tensors::block(&allocation.shape, allocation.dtype, [allocation.bytes, block]);
        Some(Derivation::bytes(formula, Source::Blocks))
    }
}

impl crate::report::Timeline {
    /// The output of `lm_head` in the last forward, positions × vocabulary.
    pub(super) fn logits(&self) -> Option<StorageId> {
        let recorded = self.recorded();
        let begin = |phase| recorded.phases.iter().find(|(p, _)| *p == phase).map(|(_, at)| *at);
        let end = begin(Phase::Backward).unwrap_or(recorded.events.len());
        let forward = begin(Phase::Forward)?..end;
        let born = recorded.events[forward].iter().filter(|event| event.is_alloc());
        born.map(|event| event.storage()).find(|&id| {
            let allocation = &recorded.log.allocations[id as usize];
            let scope = recorded.log.scopes[allocation.scope as usize];
            scope.name == "lm_head" && matches!(allocation.name, "mm" | "addmm")
        })
    }
}
