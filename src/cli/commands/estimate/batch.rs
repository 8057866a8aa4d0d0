//! `vramscope estimate --cases`: predicts a stream of cases.

use std::borrow::Borrow;
use std::sync::Arc;

use serde::Serialize;
use vramscope_engine::Report;
use vramscope_engine::report::Prediction;
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_launch::{Graded, LeftOut};
use vramscope_time::{Clock, Milliseconds};

use crate::failure::Failure;
use crate::input::cases::{Cases, Row};
use crate::input::hub::Names;
use crate::input::source::Source;
use crate::output::{self, Format, JsonArray, text};
use crate::parallel::map_ordered;
use crate::predict::predict_case;

/// The card for which cases are predicted.
pub struct Card {
    /// Shape of the GPU.
    pub gpu: Gpu,
    /// Bytes outside PyTorch's allocator.
    pub outside: Bytes,
    /// Source of times, if the card's rates are known.
    pub clock: Option<Clock>,
}

/// Writes one line per case, in order, as soon as it is known. A case that cannot be predicted gives a line with the
/// reason.
///
/// # Errors
/// If the file cannot be read or standard output cannot be written.
pub fn run(source: Source, names: &Arc<Names>, card: &Card, format: Format) -> Result<(), Failure> {
    let mut array = JsonArray::default();
    let answer = |row: &Row| match predict_row(row, names, card) {
        Ok((report, time)) => (Ok(report), time),
        Err(why) => (Err(why), None),
    };
    map_ordered(
        Cases::open(source, Arc::clone(names))?,
        answer,
        |row, (report, time)| {
            let line = || {
                let model = row.case.as_ref().ok().map(|case| case.model.as_str());
                names.remarked_on(model, Line::new(row.index, &report, (card.outside, time), &[]))
            };
            match format {
                Format::Text => output::print(&text::case_line(row, &report)),
                Format::Json => array.push(&line()),
                Format::Jsonl => output::print_json_line(&line()),
            }
        },
    )?;
    if format == Format::Json { array.close() } else { Ok(()) }
}

/// Memory of a case, and the time of its step if the card's rates are known; or the reason why there is no prediction.
fn predict_row(row: &Row, names: &Names, card: &Card) -> Result<(Report, Option<Milliseconds>), String> {
    let case = row.case.as_ref().map_err(String::clone)?;
    predict_case(case, names, card.gpu, card.clock.as_ref()).map_err(|failure| failure.to_string())
}

/// A line of prediction: the number of the case, and its memory and time, or the reason why there are none.
#[derive(Serialize)]
pub struct Line<'a> {
    i: usize,
    #[serde(flatten)]
    answer: CaseOutcome<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<Milliseconds>,
    /// Grade of a case that is predicted; last, behind the time.
    #[serde(flatten)]
    graded: Option<Graded<'a, ()>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum CaseOutcome<'a> {
    Predicted(Prediction<'a>),
    Failed { error: &'a str },
}

impl<'a> Line<'a> {
    /// The line of the case with this number, of whose run this is left out.
    pub fn new<R: Borrow<Report>>(
        i: usize,
        report: &'a Result<R, String>,
        (outside, ms): (Bytes, Option<Milliseconds>),
        not_this_run: &'a [LeftOut],
    ) -> Self {
        let answer = match report {
            Ok(report) => CaseOutcome::Predicted(report.borrow().prediction(outside)),
            Err(error) => CaseOutcome::Failed { error },
        };
        let graded = report.is_ok().then(|| Graded::of((), not_this_run));
        Self { i, answer, ms, graded }
    }
}
