//! What the course's pages compute: formulas that are data, answers as people type them, and numbers
//! drawn from a seed.
//!
//! A formula here is a rule of thumb that is being taught. Nothing of it reaches a simulation: the page
//! shows it beside the simulated value.

mod answer;
mod formula;
mod images;
mod list;
mod number;
mod random;
mod sheet;
mod unit;

pub use answer::{Answer, Judged, judge};
pub use formula::{Formula, FormulaError};
pub use list::List;
pub use number::{read as read_number, write as write_number};
pub use random::draw;
pub use sheet::{Line, Sheet, SheetError};
pub use unit::{Measure, Unit};
