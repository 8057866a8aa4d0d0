//! Losses of trainers: how each goes from a micro-batch to the number that backward begins with. A file for each that is no
//! model's own.

pub(super) mod allowed;
mod dft;
mod smoothed;

use super::grpo_generation::Inputs;
use super::steps::Trainer;
use crate::model::forward::{Batch, KeptLogits};
use crate::setup::{Loss, TrainerKind};
use crate::tape::{Tape, Tensor};

impl Trainer {
    /// Runs the forward of a micro-batch that transformers' `Trainer`, or one that is derived from it, has fetched.
    pub(super) fn fetched_loss(&mut self, t: &Tape, number: usize) -> Tensor {
        match (self.run.setup.trainer, self.run.setup.loss) {
            (TrainerKind::TrlGrpo, _) => {
                let rollout = self.generated(t, number as u64);
                self.trl_loss(t, &Inputs::Rollout(rollout))
            }
            (TrainerKind::TrlSft | TrainerKind::TrlDpo, _) => {
                let batch = &self.fetched.batches[number];
                let narrowed = self.run.narrowed(t, batch);
                let inputs = Inputs::Batch(narrowed.as_ref().unwrap_or(batch), self.fetched.items.as_ref());
                self.trl_loss(t, &inputs)
            }
            (TrainerKind::MsSwift, _) => self.swift_loss(t, &self.fetched.batches[number]),
            (TrainerKind::MsSwiftDpo, _) => self.swift_dpo_loss(t, &self.fetched.batches[number]),
            (TrainerKind::Loop | TrainerKind::Transformers, loss) => {
                let batch = &self.fetched.batches[number];
                let narrowed = self.run.narrowed(t, batch);
                let batch = narrowed.as_ref().unwrap_or(batch);
                match loss {
                    Loss::Smoothed => self.smoothed_loss(t, batch),
                    Loss::Dft => self.dft_loss(t, batch),
                    Loss::Full | Loss::FusedLinear | Loss::Shifted => self.output(t, batch),
                }
            }
        }
    }

    /// Runs the forward without labels, and hands all its logits and the labels, which are its trainer's own then, to a loss.
    fn loss_of_logits(&self, t: &Tape, batch: &Batch, loss: impl FnOnce(&Tensor, &Tensor) -> Tensor) -> Tensor {
        let Some(labels) = &batch.labels else {
            unreachable!("a trainer's own `loss` is of models of text")
        };
        let inputs = Batch {
            labels: None,
            kept: Some(KeptLogits {
                mask: None,
                count: labels.size(1),
                labels: labels.clone(),
            }),
            ..batch.clone()
        };
        let (logits, held) = self.outputs(t, &inputs);
        let loss = loss(&logits, labels);
        drop((logits, held, inputs));
        self.run.drop_cache();
        loss
    }
}
