//! `estimate --cases`: a stream of predictions.

use serde::Serialize;
use vramscope_engine::Report;
use vramscope_engine::report::Prediction;
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;

use crate::failure::Failure;
use crate::input::cases::{Cases, Row};
use crate::input::source::Source;
use crate::output::{self, Format, JsonArray, text};
use crate::predict::predict_case;

/// One line of prediction for each case, in order, written as soon as it is known, for a card of this
/// shape that holds `outside` bytes outside PyTorch's allocator.
///
/// # Errors
/// When the file cannot be read or standard output not be written; a case that cannot be predicted
/// is a line that says why.
pub fn run(source: Source, (gpu, outside): (Gpu, Bytes), format: Format) -> Result<(), Failure> {
    let mut array = JsonArray::default();
    for row in Cases::open(source)? {
        let row = row?;
        let report = predict_row(&row, gpu);
        match format {
            Format::Text => output::print(&text::case_line(&row, &report))?,
            Format::Json => array.push(&Line::new(row.index, &report, outside))?,
            Format::Jsonl => output::print_line(&Line::new(row.index, &report, outside))?,
        }
    }
    if format == Format::Json { array.end() } else { Ok(()) }
}

fn predict_row(row: &Row, gpu: Gpu) -> Result<Report, String> {
    let case = row.case.as_ref().map_err(String::clone)?;
    predict_case(case, gpu).map_err(|failure| failure.to_string())
}

/// A line of prediction: the case's number, and its figures or why there are none.
#[derive(Serialize)]
pub struct Line<'a> {
    i: usize,
    #[serde(flatten)]
    answer: Answer<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Predicted(Prediction<'a>),
    Failed { error: &'a str },
}

impl<'a> Line<'a> {
    /// The line of the case with this number.
    pub fn new(i: usize, report: &'a Result<Report, String>, outside: Bytes) -> Self {
        let answer = match report {
            Ok(report) => Answer::Predicted(report.prediction(outside)),
            Err(error) => Answer::Failed { error },
        };
        Self { i, answer }
    }
}
