//! What a run costs on each card and on several of them, and where it is cheapest.

mod prices;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;
use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_engine::simulate::can_train;
use vramscope_engine::verdict::{Fit, Room, Verdict};
use vramscope_engine::{Model, Setup, SimulateError, Simulation};
use vramscope_time::{Clock, TimedRun};

pub use prices::{MOST_BYTES as MOST_BYTES_OF_PRICES, Price, Prices, PricesError};

/// Numbers of cards that are tried at different prices.
const NUMBERS: [u64; 4] = [1, 2, 4, 8];

/// How several cards share a run of which nothing is said: the first that fits. Each sends more between the cards than the
/// one before it, and holds less on each.
const SHARED: [Strategy; 3] = [Strategy::DdpView, Strategy::Zero1, Strategy::Fsdp];

/// The run whose cost is asked for.
#[derive(Clone, Copy)]
pub struct CostQuestion<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its setup; each card has its micro-batches.
    pub setup: &'a Setup,
    /// How several cards share it, if that was said.
    pub parallel: Option<Parallel>,
    /// What cards cost.
    pub prices: &'a Prices,
    /// Samples of the whole run, if known.
    pub samples: Option<u64>,
    /// Grams of CO₂ for a kilowatt-hour, if known.
    pub co2: Option<f64>,
}

/// A run on some number of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostRow {
    /// Name of the card.
    pub card: String,
    /// Number of cards.
    pub gpus: u64,
    /// How they share the run; `None` for one.
    pub strategy: Option<Strategy>,
    /// Memory on each card, or the reason why they cannot run it.
    pub fit: Result<Fit, SimulateError>,
    /// Time and cost; `None` if it does not fit, or its time is not estimated.
    pub cost: Option<RunCost>,
}

/// Time and cost of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunCost {
    /// Milliseconds of a step.
    pub step_ms: f64,
    /// Samples a second on all cards.
    pub samples_per_s: f64,
    /// Text positions a second on all cards; `None` for models without text.
    pub tokens_per_s: Option<f64>,
    /// Price of all cards for an hour, if known.
    pub per_hour: Option<f64>,
    /// Price of a million text positions.
    pub per_million_tokens: Option<f64>,
    /// Price of a thousand samples.
    pub per_thousand_samples: Option<f64>,
    /// Hours of the whole run, if its samples are known.
    pub hours: Option<f64>,
    /// Price of the whole run.
    pub run: Option<f64>,
    /// Energy of the whole run if each board drew its limit all the time.
    pub kwh_at_most: Option<f64>,
    /// Kilograms of CO₂ for that energy.
    pub kg_co2_at_most: Option<f64>,
}

/// Order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RankBy {
    /// Cheapest sample first; those without a price behind, the fastest first.
    #[default]
    Cost,
    /// Fastest first.
    Time,
}

/// Cards that are tried, in no order: those with a price and the one that is meant, or all that CUDA drives where none has a
/// price.
pub fn cards(prices: &Prices, meant: Option<&'static Device>) -> Vec<&'static Device> {
    let mut cards: Vec<&'static Device> = if prices.is_empty() {
        Device::all()
            .iter()
            .filter(|card| card.vendor.is_driven_by_cuda())
            .collect()
    } else {
        prices.cards().collect()
    };
    if let Some(meant) = meant.filter(|meant| cards.iter().all(|card| card.name != meant.name)) {
        cards.push(meant);
    }
    cards
}

/// Numbers of each card that are tried: a few and the one that is meant; without prices the latter alone, since more cards
/// are always faster.
pub fn numbers(prices: &Prices, meant: u64) -> Vec<u64> {
    let few: &[u64] = if prices.is_empty() { &[] } else { &NUMBERS };
    let mut numbers: Vec<u64> = few.iter().copied().chain([meant.max(1)]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl CostQuestion<'_> {
    /// Simulates the run on `gpus` of a card, and times it by the card's clock, if it has one.
    pub fn on(&self, device: &'static Device, gpus: u64, clock: Option<&Clock>) -> CostRow {
        let mut best: Option<(Option<Parallel>, Result<Fit, SimulateError>)> = None;
        for parallel in self.shared(gpus) {
            let fit = self.fit(device, parallel);
            let is_enough = matches!(&fit, Ok(fit) if fit.verdict != Verdict::Oom);
            // Of those that do not fit, the one that lacks least is told; a reason, only if there is nothing else.
            let is_better = match (&fit, best.as_ref().map(|(_, fit)| fit)) {
                (_, None) | (Ok(_), Some(Err(_))) => true,
                (Ok(fit), Some(Ok(known))) => fit.needed < known.needed,
                (Err(_), _) => false,
            };
            if is_better || is_enough {
                best = Some((parallel, fit));
            }
            if is_enough {
                break;
            }
        }
        let (parallel, fit) = best.unwrap_or_else(|| (None, self.fit(device, None)));
        let fits = matches!(&fit, Ok(fit) if fit.verdict != Verdict::Oom);
        let cost = clock
            .filter(|_| fits)
            .and_then(|clock| self.cost(device, parallel, clock));
        CostRow {
            card: device.name.to_owned(),
            gpus,
            strategy: parallel.map(|parallel| parallel.strategy),
            fit,
            cost,
        }
    }

    /// Ways in which so many cards may share the run.
    fn shared(&self, gpus: u64) -> Vec<Option<Parallel>> {
        if gpus <= 1 {
            return vec![None];
        }
        if let Some(parallel) = self.parallel {
            return vec![Some(Parallel {
                world: gpus,
                ..parallel
            })];
        }
        let of = |strategy: Strategy| Parallel {
            strategy,
            world: gpus,
            ..Parallel::default()
        };
        let can = |parallel: &Parallel| can_train(self.model, self.setup, parallel).is_ok();
        let all: Vec<_> = SHARED.into_iter().map(of).filter(can).map(Some).collect();
        // None of them: the refusal of the first is the answer.
        if all.is_empty() { vec![Some(of(SHARED[0]))] } else { all }
    }

    fn fit(&self, device: &'static Device, parallel: Option<Parallel>) -> Result<Fit, SimulateError> {
        let simulation = Simulation::new(self.model, self.setup).gpu(device.gpu().unwrap_or_default());
        let report = simulation.parallel(parallel).run()?;
        let gpus = parallel.map_or(1, |parallel| parallel.world);
        Ok(Fit::of_each(&report, Room::Card(device), gpus))
    }

    fn cost(&self, device: &Device, parallel: Option<Parallel>, clock: &Clock) -> Option<RunCost> {
        if !self.setup.is_timed() {
            return None;
        }
        let gpu = device.gpu().unwrap_or_default();
        let run = TimedRun::record(self.model, self.setup, parallel.as_ref(), gpu, clock.network()).ok()?;
        // Without units for it bf16 is emulated, at a rate that no data sheet states.
        if run.computed_in() == DType::Bf16 && device.has_bf16() == Some(false) {
            return None;
        }
        let costs = clock.costs();
        let time = run.time(&costs);
        let throughput = run.throughput(&time, &costs);
        let gpus = run.gpus() as f64;
        let per_hour = self.prices.per_hour(device).map(|price| price * gpus);
        let seconds_of = |amount: f64, per_s: f64| amount / per_s;
        let price_of = |seconds: f64| per_hour.map(|price| price * seconds / 3600.0);
        let hours = self
            .samples
            .map(|samples| seconds_of(samples as f64, throughput.samples_per_s) / 3600.0);
        let kwh_at_most = hours.and_then(|hours| Some(device.board_watts? as f64 / 1e3 * hours * gpus));
        Some(RunCost {
            step_ms: time.step * 1e3,
            samples_per_s: throughput.samples_per_s,
            tokens_per_s: throughput.tokens_per_s,
            per_hour,
            per_million_tokens: throughput
                .tokens_per_s
                .and_then(|per_s| price_of(seconds_of(1e6, per_s))),
            per_thousand_samples: price_of(seconds_of(1e3, throughput.samples_per_s)),
            hours,
            run: hours.and_then(|hours| price_of(hours * 3600.0)),
            kwh_at_most,
            kg_co2_at_most: kwh_at_most.and_then(|kwh| Some(kg_co2(kwh, self.co2?))),
        })
    }
}

/// Kilograms of CO₂ for an energy in kWh, where a kilowatt-hour takes so many grams.
pub fn kg_co2(kwh: f64, grams_per_kwh: f64) -> f64 {
    kwh * grams_per_kwh / 1e3
}

/// Sorts rows: those that run by cost or time, then those whose time is not estimated, then those that do not fit, the
/// nearest first, and at last those that cannot run.
pub fn rank(rows: &mut [CostRow], by: RankBy) {
    rows.sort_by(|a, b| {
        class(a, by)
            .cmp(&class(b, by))
            .then_with(|| figure(a, by).total_cmp(&figure(b, by)))
            .then_with(|| speed(b).total_cmp(&speed(a)))
            .then_with(|| (a.gpus, &a.card).cmp(&(b.gpus, &b.card)))
            .then(Ordering::Equal)
    });
}

fn class(row: &CostRow, by: RankBy) -> u8 {
    match (&row.fit, &row.cost) {
        (Ok(_), Some(cost)) => u8::from(by == RankBy::Cost && cost.per_thousand_samples.is_none()),
        (Ok(fit), None) if fit.verdict != Verdict::Oom => 2,
        (Ok(_), None) => 3,
        (Err(_), _) => 4,
    }
}

/// The lower, the better, within a class.
fn figure(row: &CostRow, by: RankBy) -> f64 {
    match (&row.fit, &row.cost) {
        (_, Some(cost)) if by == RankBy::Cost => cost.per_thousand_samples.unwrap_or_default(),
        (_, Some(cost)) => -cost.samples_per_s,
        (Ok(fit), None) => fit.short().get() as f64,
        (Err(_), _) => 0.0,
    }
}

fn speed(row: &CostRow) -> f64 {
    row.cost.as_ref().map_or(0.0, |cost| cost.samples_per_s)
}

#[cfg(test)]
mod tests;
