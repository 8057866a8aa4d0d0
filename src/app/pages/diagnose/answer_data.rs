//! Types of the diagnoser's JSON (written by `diagnoser/answer.rs` and `diagnoser/run.rs`).

use serde::Deserialize;

use vramscope_diagnose::words::Sentence;

/// Diagnosis of all files together.
#[derive(Debug, Clone, Deserialize)]
pub struct Diagnosis {
    /// Name, line and kind of each piece of evidence.
    pub read: Vec<(String, u32, String)>,
    /// Name of each file that was not understood, and the reason.
    pub refused: Vec<(String, String)>,
    /// Findings, the most certain first.
    pub findings: Vec<Finding>,
    /// Checklist items that the evidence answers.
    pub checks: Vec<Check>,
    /// Recordings of snapshots, one per device.
    pub recordings: Vec<Recording>,
    /// Simulated step of the named run.
    pub simulated: Option<Simulated>,
    /// Reason why the named run cannot be simulated.
    pub fault: Option<String>,
}

/// A finding.
#[derive(Debug, Clone, Deserialize)]
pub struct Finding {
    /// Stable name.
    pub code: String,
    /// Certainty: cause, likely, possible, note or ruled out.
    pub confidence: String,
    /// Row of the course that explains it.
    pub row: String,
    /// Conclusion in one sentence.
    pub title: Sentence,
    /// Numbers that support it.
    pub numbers: Vec<Sentence>,
    /// Next steps: each a sentence, with the action whose simulated saving is shown beside it, if it has one.
    pub next: Vec<(Option<String>, Sentence)>,
    /// Lines of the text that show it.
    pub quotes: Vec<Quote>,
    /// A part and its whole, drawn as a bar; of a share of time, both are in millionths.
    pub gauge: Option<(f64, f64)>,
}

/// A line of the text, with secrets masked.
#[derive(Debug, Clone, Deserialize)]
pub struct Quote {
    /// Number of the line.
    pub line: u32,
    /// The line.
    pub text: String,
}

/// A checklist item that the evidence answers.
#[derive(Debug, Clone, Deserialize)]
pub struct Check {
    /// Row, list and index of the item.
    pub item: String,
    /// True if the item is fulfilled.
    pub is_done: bool,
    /// Explanation.
    pub said: Sentence,
}

/// Recording of one device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Recording {
    /// Device index.
    pub device: u32,
    /// Number of events.
    pub events: u32,
    /// Highest live bytes.
    pub peak: f64,
    /// Event after which the peak occurs.
    pub peak_event: u32,
    /// Categories of the stacked curve.
    pub categories: Vec<String>,
    /// Stack frames of the curve that is stacked by origin; the last entry covers all others.
    pub frames: Vec<String>,
    /// Events that end an optimizer step.
    pub steps: Vec<u32>,
    /// Allocations never freed, grouped by stack.
    pub never_freed: Vec<Group>,
    /// Total bytes of all segments.
    pub reserved: f64,
    /// The largest segments.
    pub segments: Vec<Segment>,
    /// Total number of segments.
    pub segment_count: u32,
}

/// Allocations with the same stack.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Group {
    /// Category.
    pub category: String,
    /// Total bytes.
    pub bytes: f64,
    /// Number of allocations.
    pub count: u64,
    /// Stack frames, innermost first.
    pub stack: Vec<String>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Segment {
    /// Size in bytes.
    pub size: f64,
    /// Bytes held by tensors.
    pub live: f64,
    /// Size of the largest free block in bytes.
    pub largest_hole: f64,
    /// Start and length of the ranges held by tensors, in thousandths of the segment.
    pub held: Vec<(u32, u32)>,
}

/// Allocations live at an instant.
#[derive(Debug, Clone, Deserialize)]
pub struct Instant {
    /// Index of the event.
    pub event: u32,
    /// Live bytes.
    pub total: f64,
    /// Number of allocations.
    pub count: u64,
    /// Largest groups, by stack.
    pub largest: Vec<Group>,
}

/// A simulated step.
#[derive(Debug, Clone, Deserialize)]
pub struct Simulated {
    /// Highest live bytes.
    pub peak: f64,
    /// Kinds of the stacked curve.
    pub kinds: Vec<String>,
    /// Bytes of each kind over time.
    pub columns: Vec<Vec<f64>>,
}

/// A simulated change to the setup.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Fix {
    /// Key of the entry.
    pub key: String,
    /// New value of the entry.
    pub value: String,
    /// Next step of a finding that this change carries out.
    pub step: Option<String>,
    /// Difference in bytes; negative if it saves.
    pub difference: i64,
    /// Verdict on the changed run.
    pub verdict: Option<String>,
}

/// A step of the ladder of memory-saving measures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Rung {
    /// Entry and value; `None` for the original setup.
    pub change: Option<(String, String)>,
    /// Peak live bytes with the measure.
    pub peak: Option<f64>,
    /// Difference in bytes; negative if it saves.
    pub difference: i64,
    /// True if the measure is kept.
    pub kept: bool,
    /// True if the setup now trains.
    pub trains: bool,
}

/// The ladder: its limit in bytes, and its measures in order.
pub type Climbed = (f64, Vec<Rung>);
