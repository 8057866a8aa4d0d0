//! Records the parts that setups are composed of, passes and updates, each once.

use super::pass::{Update, has_parts};
use super::staged::{most, stages};
use super::{Class, Peak, Search, UpdateKey};
use vramscope_engine::Setup;
use vramscope_engine::setup::{Checkpointing, Loss, Optimizer, Parallel};
use vramscope_engine::simulate::{Pass, SimulateError, UpdateInput};
use vramscope_engine::units::Bytes;

impl Search<'_> {
    /// Lower bound of an update's peak: weights and gradients, which are live in every update.
    pub(super) fn floor(&mut self, class: &Class) -> Result<Bytes, SimulateError> {
        match self.update(class, Optimizer::Sgd) {
            Some(Ok(update)) => Ok(update.peak),
            Some(Err(error)) => Err(error),
            None => Ok(Bytes::ZERO),
        }
    }

    /// Records forward and backward at a micro-batch.
    pub(super) fn record_pass(&mut self, class: &Class, batch: u64) -> Result<Pass, SimulateError> {
        let setup = self.at(class, batch);
        let model = &self.space.inputs[class.input].model;
        let pass = self.recorder.pass(model, &setup, class.parallel.as_ref())?;
        self.peaks.push(Peak {
            key: class.key(),
            input: class.input,
            batch,
            bytes: pass.peak,
        });
        Ok(pass)
    }

    fn at(&self, class: &Class, batch: u64) -> Setup {
        Setup {
            batch,
            accum: self.space.accum(batch, class.parallel.as_ref()),
            ..class.setup.clone()
        }
    }

    /// Records the update of an optimizer, which depends only on the trained parameters and their dtypes; `None` if it
    /// cannot run and the reason was already reported.
    pub(super) fn update(&mut self, class: &Class, optim: Optimizer) -> Option<Result<Update, SimulateError>> {
        // Of all inputs for one model, the smallest serves as well as any.
        let model = &self.space.inputs[class.input].model.config;
        let same = (0..self.space.inputs.len())
            .rev()
            .find(|&input| self.space.inputs[input].model.config == *model);
        let input = same.unwrap_or(class.input);
        let key = Setup {
            batch: 1,
            accum: 1,
            optim,
            freeze: class.setup.freeze,
            precision: class.setup.precision,
            ckpt: Checkpointing::None,
            loss: Loss::Full,
            ..self.space.inputs[input].setup.clone()
        };
        let key = (key, class.parallel, input);
        if let Some((_, known)) = self.updates.iter().find(|(known, _)| *known == key) {
            return known.clone().map(Ok);
        }
        let update = self.record_update(&key);
        self.updates.push((key, update.as_ref().ok().cloned()));
        Some(update)
    }

    fn record_update(&mut self, key: &UpdateKey) -> Result<Update, SimulateError> {
        let (setup, parallel, input) = key;
        if let Some(whole) = parallel
            .as_ref()
            .filter(|p| p.strategy.is_pipeline() && p.stage.is_none())
        {
            let mut all = stages(whole).map(|stage| self.record_update(&(setup.clone(), Some(stage), *input)));
            let first = all.next().unwrap_or_else(|| unreachable!("a pipeline has stages"));
            return all.fold(first, |known, stage| Ok(most(known?, stage?)));
        }
        let Some(parallel) = parallel.as_ref().filter(|parallel| !has_parts(parallel)) else {
            let update_input = self.update_input(key)?;
            let model = &self.space.inputs[*input].model;
            return self.recorder.update(model, (setup, parallel.as_ref()), &update_input);
        };
        let bare = self.bare(key, parallel)?;
        let model = &self.space.inputs[*input].model;
        self.recorder.shared_update(model, setup, parallel, bare)
    }

    /// Records the live memory that every optimizer's update starts from.
    fn update_input(&mut self, (setup, parallel, input): &UpdateKey) -> Result<UpdateInput, SimulateError> {
        let key = (without_optimizer(setup), *parallel, *input);
        if let Some((_, known)) = self.update_inputs.iter().find(|(known, _)| *known == key) {
            return Ok(known.clone());
        }
        let model = &self.space.inputs[*input].model;
        let update_input = self.recorder.update_input(model, &key.0, parallel.as_ref())?;
        self.update_inputs.push((key, update_input.clone()));
        Ok(update_input)
    }

    fn bare(&mut self, (setup, shared, input): &UpdateKey, parallel: &Parallel) -> Result<Bytes, SimulateError> {
        let key = (without_optimizer(setup), *shared, *input);
        if let Some((_, known)) = self.bare.iter().find(|(known, _)| *known == key) {
            return Ok(*known);
        }
        let model = &self.space.inputs[*input].model;
        let bare = self.recorder.bare(model, &key.0, parallel)?;
        self.bare.push((key, bare));
        Ok(bare)
    }
}

fn without_optimizer(setup: &Setup) -> Setup {
    Setup {
        optim: Optimizer::Sgd,
        ..setup.clone()
    }
}
