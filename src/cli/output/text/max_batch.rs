//! Formats the largest micro-batch, and the outcome of those around it.

use anstyle::Style;
use vramscope_engine::format::gib;
use vramscope_engine::simulate::{ORDERS, SegmentOrder, Stopped, Trial};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Verdict;
use vramscope_plan::MaxBatch as Found;

use super::paint::{self, QUIET, STRONG};
use super::row::Row;
use super::setup_words::setup_words_without;
use super::wrap::wrap;
use crate::input::cases;

/// Result of `max-batch`.
pub struct MaxBatch<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// The asked setup, without the batch.
    pub setup: String,
    /// Name of the card, if one was given, and the bytes that the allocator may reserve.
    pub room: (Option<&'a str>, Bytes),
    /// Number of steps that each trial had to run.
    pub steps: u64,
    /// The answer, with the trials.
    pub found: &'a Found,
    /// The largest batch that runs further steps, and their number, if it differs.
    pub lasting: Option<(u64, u64)>,
    /// The command that records further batches, where the answer lies at the end of those that were recorded.
    pub beyond: Option<&'a str>,
}

impl MaxBatch<'_> {
    /// Formats the question, the answer, each batch that was tried, and the reason why the next larger one fails.
    pub fn render(&self, width: usize) -> String {
        let mut out = format!("{STRONG}{}{STRONG:#}\n", self.model);
        for line in wrap(&self.setup, width) {
            out += &format!("{QUIET}{line}{QUIET:#}\n");
        }
        out += &format!("\n{}\n", self.answer(width));
        out += &format!("{STRONG}Reserved by the allocator{STRONG:#}\n");
        for (batch, trial) in &self.found.tries {
            out += &self.row(*batch, trial, width);
        }
        for line in self.notes() {
            out += &format!("\n{}\n", wrap(&line, width).join("\n"));
        }
        out
    }

    fn answer(&self, width: usize) -> String {
        let (card, limit) = (self.room.0, gib(self.room.1));
        let room = match card {
            Some(card) => format!("with the {limit} that {card} leaves PyTorch's allocator"),
            None => format!("with {limit} to reserve"),
        };
        let style = paint::verdict(if self.found.max_batch > 0 {
            Verdict::Fits
        } else {
            Verdict::Oom
        });
        let word = match self.found.max_batch {
            0 => "NONE".to_owned(),
            n => format!("BATCH {n}"),
        };
        let rest = match self.found.max_batch {
            0 if self.beyond.is_some() => format!("not even the smallest recorded batch trains {room}"),
            0 => format!("not even one sample trains {room}"),
            _ => format!("the largest that trains {} {room}", times(self.steps, "step")),
        };
        let sentence = format!("{} {rest}", word.replace(' ', "\u{a0}"));
        // The word is followed by an additional blank.
        let lines = wrap(&sentence, width.saturating_sub(1)).join("\n");
        let rest = lines.strip_prefix(&word).unwrap_or_default();
        format!("{style}{word}{style:#} {rest}\n")
    }

    fn row(&self, batch: u64, trial: &Trial, width: usize) -> String {
        let best = batch == self.found.max_batch;
        let note = match (trial.trains(), trial.retries) {
            (false, _) => "stops",
            (true, _) if best => "◀",
            (true, 0) => "",
            (true, _) => "retries",
        };
        let bar_style = match (trial.trains(), best) {
            (false, _) => paint::verdict(Verdict::Oom),
            (_, true) => Style::new(),
            _ => QUIET,
        };
        Row {
            label: &format!("  batch {batch}"),
            bytes: trial.peak_reserved,
            of: Some(self.room.1),
            note,
            bar_style,
            text_style: if best { STRONG } else { Style::new() },
        }
        .render(width)
    }

    fn notes(&self) -> Vec<String> {
        let tries = &self.found.tries;
        let best = tries.iter().find(|(batch, _)| *batch == self.found.max_batch);
        let next = tries.iter().find(|(batch, _)| *batch == self.found.max_batch + 1);
        let why = next.and_then(|(batch, trial)| Some((batch, trial.stopped.as_ref()?)));
        [
            why.map(|(batch, at)| format!("Batch {batch} stops {}.", stopped(at))),
            why.filter(|(_, at)| matches!(at.order, SegmentOrder::Drawn(_))).map(|(batch, _)| {
                format!(
                    "Whether batch {batch} trains depends on where the driver puts segments: it does in a fresh process, but \
                     not in each of {ORDERS} orders that were drawn. The answer is the largest that trains in all.",
                )
            }),
            self.found.end.as_ref().map(|why| format!("A larger batch is not simulated: {why}.")),
            self.beyond.map(|command| {
                let which = if self.found.max_batch > 0 { "larger" } else { "smaller" };
                format!("No {which} batch was recorded, so whether one trains is not known. Record it with `{command}`.")
            }),
            best.filter(|(_, trial)| trial.retries > 0).map(|(batch, trial)| {
                format!(
                    "Batch {batch} runs only because the allocator gives its cache back, {} in {}: each such retry \
                     waits for the device and makes segments anew.",
                    times(trial.retries, "time"),
                    times(self.steps, "step"),
                )
            }),
            self.lasting.map(|(batch, steps)| match batch {
                0 => format!("No batch runs {steps} steps: memory left over from earlier steps causes an OOM."),
                _ => format!(
                    "Over {steps} steps the largest is {batch}: close to the limit, memory left over from earlier steps \
                     decides. For a long run take {batch}."
                ),
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn times(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Phase and reason of a failed run.
pub fn stopped(at: &Stopped) -> String {
    let place = match at.phase {
        None => "while the model is made".to_owned(),
        Some(phase) => format!("in {} of step {}", phase.label(), at.step),
    };
    let error = &at.error;
    format!(
        "{place}: {} needs {}, but of {} {} are allocated and {} lie cached in pieces",
        at.tensor,
        gib(error.requested),
        gib(error.limit),
        gib(error.allocated),
        gib(error.unallocated()),
    )
}

/// Formats one case of a file on one line.
pub fn max_batch_line(row: &cases::Row, answer: &Result<u64, String>) -> String {
    let index = row.index;
    let case = row.case.as_ref().map(|case| {
        let setup = setup_words_without("batch", &case.setup);
        let limit = case
            .limit_gib
            .map(|gib| format!(" · limit {gib} GiB"))
            .unwrap_or_default();
        format!("{} · {setup}{limit}", case.model)
    });
    let case = case.unwrap_or_default();
    match answer {
        Ok(batch) => format!("{index:>4}  {STRONG}batch {batch:>5}{STRONG:#}  {QUIET}{case}{QUIET:#}\n"),
        Err(error) => format!("{index:>4}  error: {error}  {QUIET}{case}{QUIET:#}\n"),
    }
}
