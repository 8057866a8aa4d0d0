//! Builds a plan step by step, so that partial results can be shown.

use super::answer::{Choice, LadderStep, Nearest, Plan, Reason, Target};
use super::ladder::{Ladder, Rung, ladder};
use super::recommend::{Judge, Settled};
use super::search::{Candidate, Found, Space, front};
use vramscope_engine::device::Device;
use vramscope_engine::order::sort_by_key;
use vramscope_engine::report::outside;
use vramscope_engine::setup::Change;
use vramscope_engine::simulate::{SimulateError, Simulation, pipeline_stages, tensor_parts};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Room};
use vramscope_engine::{Report, Setup};

/// Builds a plan while the found setups are replayed one by one, so that a caller can show what is known so far and can
/// stop early.
#[derive(Debug)]
pub struct PlanBuilder {
    plan: Plan,
    /// Results of the search, consumed by the first step.
    found: Option<Found>,
    /// Setups of the front that have not been replayed, the next one last.
    waiting: Vec<Candidate>,
    settled: Option<Settled>,
    most: usize,
    has_climbed: bool,
}

impl PlanBuilder {
    /// Creates an empty plan.
    pub fn new(judge: &Judge<'_>, found: Found, target: &Target<'_>) -> Self {
        let space = judge.space;
        let mut waiting = front(&found.fitting, judge.limit);
        let plan = Plan {
            model: target.model.to_owned(),
            card: target.card.map(|device| device.name.to_owned()),
            limit: target.limit,
            planned: judge.limit,
            asked: space.asked().clone(),
            effective: space.effective(),
            gpus: space.world(),
            recommended: None,
            reasons: Vec::new(),
            front: Vec::new(),
            front_len: waiting.len(),
            nearest: None,
            ladder: Vec::new(),
            offer: None,
            searched: found.decided,
            not_searched: not_searched(space),
            refused: found.refused.clone(),
        };
        ends_first(&mut waiting, space.asked());
        waiting.reverse();
        Self {
            plan,
            found: Some(found),
            waiting,
            settled: None,
            most: target.most,
            has_climbed: false,
        }
    }

    /// Upper bound of the number of remaining steps.
    pub fn left(&self) -> usize {
        let shown = (self.most - self.plan.front.len()).min(self.waiting.len());
        usize::from(self.found.is_some()) + shown + usize::from(!self.has_climbed)
    }

    /// Adds the next part: the recommended setup, then the front one by one, then the ladder. Returns false if nothing
    /// was left.
    ///
    /// # Errors
    /// The first error of a simulation.
    pub fn step(&mut self, judge: &Judge<'_>) -> Result<bool, SimulateError> {
        if let Some(found) = self.found.take() {
            self.recommend(judge, &found)?;
        } else if self.plan.front.len() < self.most
            && let Some(candidate) = self.waiting.pop()
        {
            // The recommended setup has already been replayed.
            let known = self.settled.take_if(|settled| settled.candidate == candidate);
            let settled = match known {
                Some(settled) => Some(settled),
                None => judge.settle(&candidate)?,
            };
            if let Some(settled) = settled {
                let choice = self.choice_of(judge, settled)?;
                show(&mut self.plan.front, choice);
            }
        } else if !self.has_climbed {
            self.has_climbed = true;
            self.climb(judge);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The plan so far.
    pub fn so_far(&self) -> &Plan {
        &self.plan
    }

    /// The finished plan.
    pub fn plan(self) -> Plan {
        self.plan
    }

    fn recommend(&mut self, judge: &Judge<'_>, found: &Found) -> Result<(), SimulateError> {
        match (judge.recommend(found)?, &found.nearest) {
            (Some(best), _) => {
                self.plan.reasons = best.reasons.iter().map(reason).collect();
                self.plan.recommended = Some(self.choice_of(judge, best.settled.clone())?);
                self.settled = Some(best.settled);
            }
            (None, Some(candidate)) => self.plan.nearest = nearest(judge, candidate).ok(),
            (None, None) => {}
        }
        Ok(())
    }

    /// A setup with the figures that every other place shows of it: those of an estimate, which no limit hems in and which
    /// takes a fresh process. The replays of [`Judge`] decide only whether it trains.
    fn choice_of(&self, judge: &Judge<'_>, settled: Settled) -> Result<Choice, SimulateError> {
        let candidate = settled.candidate.clone();
        let next = settled.next.map(|(batch, _)| batch);
        let report = simulated(judge, &candidate)?;
        let next_verdict = match next {
            Some(batch) => {
                let larger = simulated(judge, &judge.at_batch(&candidate, batch)).ok();
                larger.map(|larger| Fit::of_each(&larger, self.room(judge), self.plan.gpus).verdict)
            }
            None => None,
        };
        Ok(Choice {
            peak_reserved: Some(report.peak_reserved),
            next_verdict,
            ..Choice::from(settled)
        })
    }

    /// The memory that a verdict on a setup of the plan is about.
    fn room(&self, judge: &Judge<'_>) -> Room<'static> {
        let is_whole = |card: &&'static Device| self.plan.limit == outside::for_allocator(card, self.plan.gpus);
        match judge.device.filter(is_whole) {
            Some(card) => Room::Card(card),
            None => Room::Allocator(self.plan.limit),
        }
    }

    fn climb(&mut self, judge: &Judge<'_>) {
        let climbed = climb(judge);
        self.plan.offer = climbed.as_ref().and_then(|ladder| ladder.offer.as_ref()).map(offered);
        self.plan.ladder = climbed
            .map(|ladder| ladder.rungs.iter().map(rung).collect())
            .unwrap_or_default();
    }
}

/// Moves the fastest setup of a front that trains the parameters that were asked for, and the smallest, behind its
/// first, the nearest, so that these three are replayed however many there are.
fn ends_first(front: &mut Vec<Candidate>, asked: &Setup) {
    let same = front.iter().filter(|one| one.setup.freeze == asked.freeze);
    let slowness = Candidate::seconds_a_sample;
    let fastest = same.min_by(|a, b| slowness(a).total_cmp(&slowness(b)));
    let smallest = front.iter().min_by_key(|one| one.peak);
    let mut first: Vec<Candidate> = Vec::new();
    for end in [front.first(), fastest, smallest].into_iter().flatten() {
        if !first.contains(end) {
            first.push(end.clone());
        }
    }
    front.retain(|one| !first.contains(one));
    front.splice(0..0, first);
}

/// Adds a setup to those shown, the nearest first, unless one of them is at least as good in everything that is shown of
/// it; removes those that it beats. The front knows live bytes alone, so that reserved bytes may decide otherwise.
fn show(shown: &mut Vec<Choice>, new: Choice) {
    let measures = |of: &Choice| {
        let rate = of.samples_per_s.unwrap_or_default();
        (of.distance, -rate, of.reserved())
    };
    let beats = |one: &Choice, other: &Choice| {
        let (one, other) = (measures(one), measures(other));
        one.0 <= other.0 && one.1 <= other.1 && one.2 <= other.2
    };
    if shown.iter().any(|one| beats(one, &new)) {
        return;
    }
    shown.retain(|one| !beats(&new, one));
    let order = |of: &Choice| (measures(of).0, measures(of).1);
    let at = shown.iter().take_while(|one| order(one) <= order(&new)).count();
    shown.insert(at, new);
}

/// Options that this version cannot simulate, and so cannot search.
fn not_searched(space: &Space) -> Vec<String> {
    if space.world() == 1 {
        return vec!["activations and weights in the host's memory on one GPU".to_owned()];
    }
    let tensor = tensor_parts(space.model(0), space.world()).err();
    let of_several = [
        "DeepSpeed's ZeRO-2 and ZeRO-3: the sharded strategies are PyTorch's FSDP2, without and with resharding",
        "FSDP2 with 8-bit states",
    ];
    let pipeline = pipeline_stages(space.model(0), space.world()).err();
    let pipeline = pipeline.map(|why| why.to_string()).or_else(|| {
        space.has_no_stages().then(|| {
            "pipeline parallelism: it takes at least as many micro-batches in a step as there are GPUs; say how many \
             samples a step has"
                .to_owned()
        })
    });
    let tensor = tensor.map(|why| why.to_string());
    let of_parts = tensor.into_iter().chain(pipeline);
    of_parts.chain(of_several.map(str::to_owned)).collect()
}

fn climb(judge: &Judge<'_>) -> Option<Ladder> {
    if judge.space.world() > 1 {
        return None;
    }
    let gpu = judge.device.and_then(Device::gpu).unwrap_or_default();
    let asked = Setup {
        batch: judge.space.effective().unwrap_or(judge.space.asked().batch),
        accum: 1,
        ..judge.space.asked().clone()
    };
    ladder(judge.space.model(0), &asked, gpu, judge.limit).ok()
}

/// Simulates a setup of the plan as an estimate does.
fn simulated(judge: &Judge<'_>, candidate: &Candidate) -> Result<Report, SimulateError> {
    let gpu = judge.device.and_then(Device::gpu).unwrap_or_default();
    let model = judge.space.model(candidate.input);
    let simulation = Simulation::new(model, &candidate.setup).gpu(gpu);
    simulation.parallel(candidate.parallel).run()
}

fn nearest(judge: &Judge<'_>, candidate: &Candidate) -> Result<Nearest, SimulateError> {
    let report = simulated(judge, candidate)?;
    let live = report.timeline.live(report.timeline.peak_instant());
    let mut parts: Vec<(String, Bytes)> = Vec::new();
    for held in live.by_description() {
        let name = held.kind().label();
        match parts.iter_mut().find(|(known, _)| known == name) {
            Some((_, bytes)) => *bytes += held.bytes,
            None => parts.push((name.to_owned(), held.bytes)),
        }
    }
    sort_by_key(&mut parts, |(_, bytes)| std::cmp::Reverse(*bytes));
    Ok(Nearest {
        choice: Choice::of(candidate),
        short: report.peak_allocated.max(candidate.peak).saturating_sub(judge.limit),
        phase: report.peak_phase,
        parts,
    })
}

fn reason(of: &super::reason::Reason) -> Reason {
    Reason {
        key: of.key.to_owned(),
        from: of.from.clone(),
        to: of.to.clone(),
        saves: of.saves,
        seconds: of.costs,
        needed: of.needed,
    }
}

fn rung(of: &Rung) -> LadderStep {
    LadderStep {
        key: of.change.as_ref().map(|change| change.setting().key().to_owned()),
        to: of.change.as_ref().map(Change::text),
        peak: of.peak,
        difference: of.difference,
        phase: of.phase,
        kept: of.kept,
        trains: of.trains,
    }
}

fn offered(of: &super::ladder::Offer) -> LadderStep {
    LadderStep {
        key: Some(of.change.setting().key().to_owned()),
        to: Some(of.change.text()),
        peak: None,
        difference: of.difference,
        phase: None,
        kept: true,
        trains: of.trains,
    }
}
