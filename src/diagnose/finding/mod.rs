//! Draws conclusions from the evidence.

mod asked;
mod capacity;
mod cause;
mod checks;
mod context;
mod counters;
mod evidence;
mod from_command;
mod growth;
mod hypotheses;
mod known;
mod model_shape;
mod order;
mod own;
mod profile;
mod shapes;
mod simulated;
mod snapshot;
mod steps;
#[cfg(test)]
mod tests;
mod usage;
pub mod words;

use serde::{Deserialize, Serialize};

pub use cause::{AttentionShape, Cause, Growth, Holder, LogitsShape};
pub use checks::{Check, checks};
pub use context::{Context, Fix, Fixes};
pub use model_shape::catalogue_name;
pub use steps::Action;

use self::known::Known;
use self::words::Sentence;
use super::facts::{Fact, Place};
use super::{Evidence, Piece};

/// Confidence in a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The numbers show it.
    Cause,
    /// The numbers suggest it.
    Likely,
    /// The numbers are consistent with it.
    Possible,
    /// Worth knowing, regardless of the cause.
    Note,
    /// The numbers contradict it.
    RuledOut,
}

impl Confidence {
    /// One degree more.
    const fn raised(self) -> Self {
        match self {
            Self::Likely => Self::Cause,
            Self::Possible => Self::Likely,
            other => other,
        }
    }

    /// One degree less.
    const fn lowered(self) -> Self {
        match self {
            Self::Cause => Self::Likely,
            Self::Likely => Self::Possible,
            other => other,
        }
    }

    /// English name of this confidence.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::Likely => "likely",
            Self::Possible => "possible",
            Self::Note => "note",
            Self::RuledOut => "ruled out",
        }
    }
}

/// One conclusion, with its numbers and the recommended actions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Confidence in the finding.
    #[serde(rename = "standing")]
    pub confidence: Confidence,
    /// The cause, with the numbers that support it.
    pub cause: Cause,
    /// What to do in this setup, the most important first: the change of a setup that carries it out, and its words.
    pub advice: Vec<(Option<Action>, Sentence)>,
    /// Recommended actions that hold for any setup, after those.
    #[serde(rename = "actions")]
    pub steps: Vec<Action>,
    /// Names of the facts that speak for it.
    #[serde(rename = "for")]
    pub speaks_for: Vec<String>,
    /// Names of the facts that speak against it.
    #[serde(rename = "against")]
    pub speaks_against: Vec<String>,
    /// Lines of the text that show it, as they were written; secrets are masked.
    pub quotes: Vec<Quote>,
}

/// A line of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    #[serde(skip)]
    place: Place,
    /// Number of the line.
    pub line: usize,
    /// The line as it was written, without colours and with secrets masked.
    pub text: String,
}

impl Finding {
    fn new(confidence: Confidence, cause: Cause, steps: &[Action]) -> Self {
        Self {
            confidence,
            cause,
            steps: steps.to_vec(),
            advice: Vec::new(),
            speaks_for: Vec::new(),
            speaks_against: Vec::new(),
            quotes: Vec::new(),
        }
    }

    /// The same finding with the line that shows it.
    fn at(mut self, place: Place, known: &Known<'_>) -> Self {
        self.quotes = hypotheses::quotes(&[place], &known.texts);
        self
    }

    /// Identifier of the course row that explains this finding.
    pub fn row(&self) -> &'static str {
        self.cause.row()
    }
}

/// Returns every finding that the evidence supports, the most certain first; at most one is the cause.
pub fn diagnose(pieces: &[Piece], context: &Context) -> Vec<Finding> {
    let all: Vec<&Evidence> = pieces.iter().map(|piece| &piece.evidence).collect();
    let capacity = context.capacity.or_else(|| evidence::capacity(&all));
    let mut known = Known::of(pieces);
    let mut findings = Vec::new();
    let mut text = 0_usize;
    for piece in pieces {
        let place = Place {
            text: text.saturating_sub(1),
            line: piece.line,
        };
        let own: Vec<Finding> = match &piece.evidence {
            Evidence::Text(_) => {
                text += 1;
                Vec::new()
            }
            Evidence::Oom(message) => {
                let (message, told) = own::told_apart(message, &known, place);
                told.into_iter()
                    .chain(capacity::findings(&message, context, &known))
                    .collect()
            }
            Evidence::Counters(counters) => counters::findings(counters),
            Evidence::Smi(smi) => usage::findings(smi),
            Evidence::Log(log) => growth::findings(log, capacity.or(log.total)),
            Evidence::Profile(profile) => profile::findings(profile, capacity),
            Evidence::Snapshot(summary) => snapshot::findings(summary, capacity, context),
        };
        findings.extend(own.into_iter().map(|finding| match finding.quotes.is_empty() {
            true => finding.at(place, &known),
            false => finding,
        }));
    }
    for finding in &findings {
        if matches!(finding.cause, Cause::Leak(_)) && finding.confidence <= Confidence::Possible {
            let place = finding
                .quotes
                .first()
                .map_or(Place { text: 0, line: 0 }, |quote| quote.place);
            known.facts.add(Fact::Grows, place);
        }
    }
    known.learn(context);
    findings.extend(simulated::finding(&known, capacity, context));
    findings.extend(from_command::findings(&known));
    findings.extend(hypotheses::findings(&mut known));
    evidence::reconcile(&mut findings);
    order::order(&mut findings);
    findings.extend(asked::finding(&known, &findings));
    steps::suit(&mut findings, &known.facts);
    findings.sort_by_key(|finding| finding.confidence);
    findings
}
