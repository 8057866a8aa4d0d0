//! `vramscope estimate --phase evaluate` and `--phase generate`: predicts inference.

use clap::ValueEnum;
use vramscope_engine::simulate::{Inference, evaluate, generate};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Model, Setup};

use super::Estimate;
use crate::failure::Failure;
use crate::output::{self, Format, terminal, text};

/// What a model is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Phase {
    /// A training step
    Train,
    /// One batch without gradients, its logits kept
    Evaluate,
    /// The whole batch, then token by token with a cache of keys and values
    Generate,
}

impl Estimate {
    /// Predicts the memory of evaluation or generation, without gradients and optimizer states.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_inference(self, phase: Phase) -> Result<(), Failure> {
        let (format, gpu, tokens) = (self.format.unwrap_or(Format::Text), self.room.gpu()?, self.new_tokens);
        let names = self.subject.names();
        let (model, setup) = self.subject.read(&self.setup)?;
        let figures = figures(&model, &setup, (phase, tokens), gpu)?;
        let answer = figures.answer((&model, &setup), (phase == Phase::Generate).then_some(tokens));
        match format {
            Format::Text => output::print(&text::inference(&model.name, &setup, &figures, terminal::width())),
            Format::Json => output::print_json(&names.remarked(answer)),
            Format::Jsonl => output::print_json_line(&names.remarked(answer)),
        }
    }
}

fn figures(model: &Model, setup: &Setup, (phase, tokens): (Phase, u64), gpu: Gpu) -> Result<Inference, Failure> {
    let figures = match phase {
        Phase::Generate => generate(model, setup, tokens, gpu),
        Phase::Train | Phase::Evaluate => evaluate(model, setup, gpu),
    };
    figures.map(|passed| passed.figures).map_err(Failure::input)
}
