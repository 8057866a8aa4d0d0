//! Diagnosis of all files, as JSON for the page.

use serde::Serialize;
use vramscope_diagnose::snapshot::{Category, Group, Recording, SegmentMap, Summary};
use vramscope_diagnose::words::{self, Sentence};
use vramscope_diagnose::{Action, Check, Confidence, Evidence, Finding, Piece, Quote, checks};
use vramscope_engine::units::Bytes;

use super::run::{Simulated, SimulatedRun};

/// Name of a file, with the evidence read from it or the reason why it was not understood.
pub type File = (String, Result<Vec<Piece>, String>);

/// Diagnosis of all files together.
#[derive(Serialize)]
pub struct Diagnosis<'a> {
    /// Name, line and kind of each piece of evidence.
    read: Vec<(&'a str, usize, &'static str)>,
    /// Name of each file that was not understood, and the reason.
    refused: Vec<(&'a str, &'a str)>,
    findings: Vec<WordedFinding>,
    checks: Vec<Check>,
    recordings: Vec<Shown<'a>>,
    simulated: Option<Simulated>,
    /// Reason why the named run cannot be simulated.
    fault: Option<&'a str>,
}

#[derive(Serialize)]
struct WordedFinding {
    code: &'static str,
    confidence: Confidence,
    /// Identifier of the row of the course that explains it.
    row: &'static str,
    /// The conclusion, in one sentence.
    title: Sentence,
    /// Numbers that support it.
    numbers: Vec<Sentence>,
    /// Next steps: each a sentence, with the action whose simulated saving the page shows beside it, if it has one.
    next: Vec<(Option<Action>, Sentence)>,
    /// Lines of the text that show it.
    quotes: Vec<Quote>,
    /// A part and its whole, which the page draws as a bar; of a share of time, both are in millionths.
    gauge: Option<(Bytes, Bytes)>,
}

/// A recording, as an overview; the page requests details on demand.
#[derive(Serialize)]
struct Shown<'a> {
    device: u32,
    events: u32,
    peak: Bytes,
    peak_event: u32,
    /// Categories in the order in which the page stacks them.
    categories: [Category; Category::ALL.len()],
    frames: &'a [String],
    steps: &'a [u32],
    never_freed: &'a [Group],
    reserved: Bytes,
    segments: Vec<SegmentMap>,
    segment_count: usize,
}

/// Maximum number of segments drawn.
const SEGMENTS: usize = 48;
/// Maximum number of step ends marked.
const STEPS: usize = 200;

impl<'a> Diagnosis<'a> {
    /// Combines the files, their findings, their recordings and the run.
    pub fn of(
        files: &'a [File],
        (findings, pieces): (&[Finding], &[Piece]),
        recordings: &'a [Recording],
        (run, fault): (Option<&SimulatedRun>, Option<&'a str>),
    ) -> Self {
        let understood = files
            .iter()
            .filter_map(|(name, pieces)| Some((name, pieces.as_ref().ok()?)));
        let all: Vec<(&str, &Piece)> = understood
            .flat_map(|(name, pieces)| pieces.iter().map(move |piece| (name.as_str(), piece)))
            .collect();
        // They correspond one to one with the recordings: both have an entry for each device of each snapshot, in the same order.
        let summaries = all.iter().filter_map(|(_, piece)| match &piece.evidence {
            Evidence::Snapshot(summary) => Some(&**summary),
            _ => None,
        });
        let refused = files.iter().filter_map(|(name, pieces)| {
            let refusal = pieces.as_ref().err()?;
            Some((name.as_str(), refusal.as_str()))
        });
        let setup = run.map(|run| &run.setup);
        Self {
            read: all
                .iter()
                .map(|(name, piece)| (*name, piece.line, piece.evidence.name()))
                .collect(),
            refused: refused.collect(),
            findings: findings
                .iter()
                .map(|finding| WordedFinding::of(finding, run.is_some()))
                .collect(),
            checks: checks(pieces, findings, setup),
            recordings: summaries
                .zip(recordings)
                .map(|(summary, recording)| Shown::of(summary, recording))
                .collect(),
            simulated: run.map(SimulatedRun::simulated),
            fault,
        }
    }
}

impl WordedFinding {
    fn of(finding: &Finding, is_run_named: bool) -> Self {
        let is_ruled_out = finding.confidence == Confidence::RuledOut;
        let steps = finding.steps.iter().copied().filter(|_| !is_ruled_out);
        let steps = steps.filter(|step| !(is_run_named && *step == Action::NameSetup));
        Self {
            code: finding.cause.code(),
            confidence: finding.confidence,
            row: finding.row(),
            title: words::title(&finding.cause, finding.confidence),
            numbers: words::evidence(&finding.cause),
            next: finding
                .advice
                .iter()
                .cloned()
                .chain(steps.map(|step| (Some(step), page_step(step))))
                .collect(),
            quotes: finding.quotes.clone(),
            gauge: finding.cause.gauge(),
        }
    }
}

/// Wording of a step; where the command line names a flag, the page names its own control.
fn page_step(step: Action) -> Sentence {
    let mut sentence = words::step(step);
    match step {
        Action::NameSetup => sentence.key = "s_name_setup_above".into(),
        Action::NameCard => sentence.key = "s_name_card_above".into(),
        _ => {}
    }
    sentence
}

impl<'a> Shown<'a> {
    fn of(summary: &'a Summary, recording: &'a Recording) -> Self {
        let (segments, segment_count) = recording.segments(SEGMENTS);
        let steps = recording.steps();
        Self {
            device: recording.device,
            events: recording.events(),
            peak: summary.peak,
            peak_event: summary.peak_event,
            categories: Category::ALL,
            frames: recording.frames(),
            steps: &steps[..steps.len().min(STEPS)],
            never_freed: &summary.never_freed,
            reserved: summary.holes.reserved,
            segments,
            segment_count,
        }
    }
}
