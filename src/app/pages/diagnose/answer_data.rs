//! What the diagnoser writes (`diagnoser/answer.rs`, `diagnoser/run.rs`).

use serde::Deserialize;

use super::phrases::Said;

/// What all files together mean.
#[derive(Debug, Clone, Deserialize)]
pub struct Answer {
    /// Name, line and kind of each piece.
    pub read: Vec<(String, u32, String)>,
    /// Name, and why nothing of it was understood.
    pub refused: Vec<(String, String)>,
    /// The surest first.
    pub findings: Vec<Finding>,
    /// Items of checklists that are answered.
    pub checks: Vec<Check>,
    /// Recordings of snapshots.
    pub recordings: Vec<Recording>,
    /// A step of the run that was named.
    pub simulated: Option<Simulated>,
    /// Why that run cannot be simulated.
    pub fault: Option<String>,
}

/// One conclusion.
#[derive(Debug, Clone, Deserialize)]
pub struct Finding {
    /// Its stable name.
    pub code: String,
    /// How sure it is.
    pub standing: String,
    /// Of the course.
    pub row: String,
    /// In one sentence.
    pub title: Said,
    /// The numbers that show it.
    pub numbers: Vec<Said>,
    /// What to do: its name, and in a sentence.
    pub next: Vec<(String, Said)>,
    /// A part and its whole.
    pub gauge: Option<(f64, f64)>,
}

/// An item of a checklist that is answered.
#[derive(Debug, Clone, Deserialize)]
pub struct Check {
    /// Row, list and place.
    pub item: String,
    /// Whether it is done.
    pub is_done: bool,
    /// What is said of it.
    pub said: Said,
}

/// One device's recording.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Recording {
    /// Number of the device.
    pub device: u32,
    /// How many events it has.
    pub events: u32,
    /// Highest live bytes.
    pub peak: f64,
    /// After which event.
    pub peak_event: u32,
    /// What is stacked by category.
    pub categories: Vec<String>,
    /// What is stacked by where it was made; the last is all others.
    pub frames: Vec<String>,
    /// Events after which optimizer steps were over.
    pub steps: Vec<u32>,
    /// What was made and never freed.
    pub never_freed: Vec<Group>,
    /// Bytes of all segments.
    pub reserved: f64,
    /// The largest segments.
    pub segments: Vec<Segment>,
    /// How many there are.
    pub segment_count: u32,
}

/// What was made in one place.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Group {
    /// What it is for.
    pub category: String,
    /// Bytes of all.
    pub bytes: f64,
    /// How many.
    pub count: u64,
    /// Frames, the innermost first.
    pub stack: Vec<String>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Segment {
    /// Bytes.
    pub size: f64,
    /// What tensors hold.
    pub live: f64,
    /// Its largest hole.
    pub largest_hole: f64,
    /// Begin and length of what tensors hold, in thousandths.
    pub held: Vec<(u32, u32)>,
}

/// What lives at an instant.
#[derive(Debug, Clone, Deserialize)]
pub struct Instant {
    /// Number of the event.
    pub event: u32,
    /// Live bytes.
    pub total: f64,
    /// How many allocations.
    pub count: u64,
    /// The largest, by where they were made.
    pub largest: Vec<Group>,
}

/// A simulated step.
#[derive(Debug, Clone, Deserialize)]
pub struct Simulated {
    /// Highest live bytes.
    pub peak: f64,
    /// What is stacked.
    pub kinds: Vec<String>,
    /// Bytes of each, over time.
    pub columns: Vec<Vec<f64>>,
}

/// A change of the setup that was tried.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Fix {
    /// The entry.
    pub key: String,
    /// Its new value.
    pub value: String,
    /// The step that it carries out.
    pub step: Option<String>,
    /// Bytes more (or less).
    pub difference: i64,
    /// Whether the run then fits.
    pub verdict: Option<String>,
}

/// A measure of the ladder.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Rung {
    /// Entry and value; nothing for what was asked.
    pub change: Option<(String, String)>,
    /// Highest live bytes with it.
    pub peak: Option<f64>,
    /// Bytes more (or less).
    pub difference: i64,
    /// Whether it stays.
    pub kept: bool,
    /// Whether the setup trains now.
    pub trains: bool,
}

/// The ladder: its limit in bytes, and its measures in order.
pub type Climbed = (f64, Vec<Rung>);
