//! The result of `check`, as scripts read it.

use schemars::JsonSchema;
use serde::Serialize;
use vramscope_engine::report::Difference;
use vramscope_engine::units::Bytes;
use vramscope_launch::Direction;

use crate::failure::Failure;
use crate::input::budget::Budget;
use crate::judged::Judged;
use crate::outcome::Outcome;
use crate::output::target::Target;
use crate::output::text::verdict_sentence;

/// Result of `vramscope check`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckDocument {
    /// The worst outcome of all runs.
    pub outcome: Outcome,
    /// The exit code of the command: that of the worst outcome which is not allowed.
    pub exit_code: u8,
    /// Name of the card, or `allocator limit`.
    pub target: String,
    /// Bytes of the card that programs see, or of the limit.
    pub room: u64,
    /// Bytes of the budget, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// The runs, in the order in which they were given.
    pub runs: Vec<CheckedRun>,
}

/// A run that was checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedRun {
    /// As it was given: a file, a case, a model, a command.
    pub run: String,
    /// What is known of it.
    pub outcome: Outcome,
    /// The exit code that belongs to it.
    pub exit_code: u8,
    /// The outcome in a sentence.
    pub message: String,
    /// Its figures; none if nothing bounds it, or it cannot be read.
    #[serde(flatten)]
    pub figures: Option<Figures>,
    /// The same run in the commit that it was compared to, and how much more it takes now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Change>,
}

/// Figures of a run, in bytes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Figures {
    /// The model, if it is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// GPUs that share the run; the figures are of one of them.
    pub gpus: u64,
    /// What it needs of the card, with what lies outside PyTorch's allocator, or of the limit.
    pub needed: u64,
    /// Highest bytes in tensors of a steady step.
    pub peak_allocated: u64,
    /// Highest bytes that the allocator takes.
    pub peak_reserved: u64,
    /// The phase of the peak: `forward`, `backward`, `optimizer`.
    pub peak_phase: String,
    /// What the figures are of the run: `exact`, `at_most` and `between` (it needs no more), `at_least`, `dry_run` (neither).
    pub grade: String,
    /// What the figures leave out of the run.
    pub not_this_run: Vec<NotThisRun>,
}

/// What figures leave out of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NotThisRun {
    /// The aspect of the run.
    pub what: String,
    /// The line that says so, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
    /// Why it is left out.
    pub why: String,
    /// Where the run lies from the figures: `at_most`, `at_least`, `unknown` or `another_run`.
    pub direction: String,
}

/// A run beside itself in another commit.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Change {
    /// The commit does not have the file.
    New,
    /// Nothing is known of the run in that commit, or of the run now.
    NotKnown {
        /// Why.
        why: String,
    },
    /// Both are known.
    Known {
        /// The outcome in that commit.
        outcome: Outcome,
        /// Bytes that it needed.
        needed: u64,
        /// Bytes that the run needs more now; below zero if it needs less.
        more: i64,
        /// Parts of what it needs that have changed, in the order in which a bar stacks them.
        parts: Vec<PartChange>,
    },
}

/// A part of what a run needs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PartChange {
    /// Name of the part, such as `activations`.
    pub part: String,
    /// Bytes in the commit.
    pub before: u64,
    /// Bytes now.
    pub now: u64,
}

/// A run that was judged, or why it was not.
pub type Answer = Result<Judged, Failure>;

impl CheckDocument {
    /// Sums up runs that were checked against a target, of which some outcomes are allowed.
    pub fn of((target, budget): (&Target, Option<Budget>), allowed: &[Outcome], runs: Vec<CheckedRun>) -> Self {
        let room = target.room().bytes();
        let outcomes = || runs.iter().map(|run| run.outcome);
        let failing = outcomes().filter(|outcome| !allowed.contains(outcome)).max();
        Self {
            outcome: outcomes().max().unwrap_or(Outcome::Fits),
            exit_code: failing.map_or(0, Outcome::exit_code),
            target: target.name().to_owned(),
            room: room.get(),
            budget: budget.map(|budget| budget.of(room).get()),
            runs,
        }
    }
}

impl CheckedRun {
    /// A run that was judged, and the same in another commit: `Some(None)` if that commit does not have it.
    pub fn of(
        name: &str,
        (judged, before): (Answer, Option<Option<Answer>>),
        (target, budget): (&Target, Option<Budget>),
    ) -> Self {
        let before = before.map(|before| Change::of(&judged, before));
        let (outcome, message, figures) = match &judged {
            Ok(judged) => {
                let budget = budget.map(|budget| budget.of(target.room().bytes()));
                let (outcome, message) = said(judged, target, budget);
                (outcome, message, Some(Figures::of(judged)))
            }
            Err(failure @ Failure::NotKnown(_)) => (Outcome::NotKnown, failure.to_string(), None),
            Err(failure) => (Outcome::Error, failure.to_string(), None),
        };
        Self {
            run: name.to_owned(),
            outcome,
            exit_code: outcome.exit_code(),
            message,
            figures,
            before,
        }
    }
}

/// Outcome of a run and its sentence.
fn said(judged: &Judged, target: &Target, budget: Option<Bytes>) -> (Outcome, String) {
    let mut message = verdict_sentence(&judged.fit, target, judged.grade);
    if let Some(positions) = judged.length_that_fits {
        message += &format!("; with samples of up to {positions} positions it fits");
    }
    if let Some(fit) = judged.samples_that_fit {
        message += &match fit.share > 0.0 {
            true => format!(
                "; {:.1}% of the samples fit, those of at most {} positions",
                100.0 * fit.share,
                fit.positions
            ),
            false => "; none of the samples fit".to_owned(),
        };
    }
    let outcome = judged.outcome();
    let is_within_room = matches!(outcome, Outcome::Fits | Outcome::Tight);
    match budget.filter(|budget| is_within_room && judged.fit.needed > *budget) {
        Some(budget) => {
            let (more, of) = (
                judged.fit.needed.saturating_sub(budget),
                vramscope_engine::format::gib(budget),
            );
            message += &format!("; {} more than the budget of {of}", vramscope_engine::format::gib(more));
            (Outcome::OverBudget, message)
        }
        None => (outcome, message),
    }
}

impl Figures {
    fn of(judged: &Judged) -> Self {
        let report = &judged.report;
        Self {
            model: judged.model.clone(),
            gpus: judged.gpus,
            needed: judged.fit.needed.get(),
            peak_allocated: report.peak_allocated.get(),
            peak_reserved: report.peak_reserved.get(),
            peak_phase: word(&report.peak_phase),
            grade: word(&judged.grade),
            not_this_run: judged
                .left_out
                .iter()
                .map(|left| NotThisRun {
                    what: left.what.word().to_owned(),
                    given: left.given.clone(),
                    why: left.why.clone(),
                    direction: word::<Direction>(&left.direction),
                })
                .collect(),
        }
    }
}

/// The stable word of a choice, as it stands in JSON.
fn word<T: Serialize>(choice: &T) -> String {
    match serde_json::to_value(choice) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("a choice is a word in JSON, not {other:?}"),
    }
}

impl Change {
    fn of(now: &Answer, before: Option<Answer>) -> Self {
        let (now, before) = match (now, before) {
            (_, None) => return Self::New,
            (_, Some(Err(failure))) => {
                let why = format!("before: {failure}");
                return Self::NotKnown { why };
            }
            (Err(failure), _) => {
                let why = failure.to_string();
                return Self::NotKnown { why };
            }
            (Ok(now), Some(Ok(before))) => (now, before),
        };
        let both = [&before, now].map(|run| (&run.report, &run.fit.outside[..]));
        let difference = Difference::between(both);
        let changed = difference.parts.iter().filter(|(_, [before, now])| before != now);
        Self::Known {
            outcome: before.outcome(),
            needed: difference.needed[0].get(),
            more: difference.more(),
            parts: changed
                .map(|(part, [before, now])| PartChange {
                    part: crate::output::text::part_name(*part),
                    before: before.get(),
                    now: now.get(),
                })
                .collect(),
        }
    }
}
