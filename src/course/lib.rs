//! Computations of the course's pages: formulas stored as data, judging typed answers, and numbers drawn from a seed.
//!
//! A formula here is a rule of thumb that the course teaches. None of it enters a simulation: the page shows it beside
//! the simulated value.

mod answer;
mod formula;
mod images;
mod list;
mod number;
mod random;
mod sheet;
mod unit;

pub use answer::{Judged, TypedAnswer, judge};
pub use formula::{Formula, FormulaError};
pub use list::List;
pub use number::{read as read_number, write as write_number};
pub use random::draw;
pub use sheet::{Line, Sheet, SheetError};
pub use unit::{Measure, Unit};
