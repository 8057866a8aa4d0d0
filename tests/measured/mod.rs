//! Compares measurements with predictions: the rows of `data/truth`, the errors of the predictions, and the table in
//! the repository.

mod comparison;
mod limits;
mod quantity;
mod row;
pub mod several;
mod statistics;
mod table;

pub use comparison::{Comparison, Outcome};
pub use limits::{Limit, limits};
pub use quantity::Quantity;
pub use row::{Measured, Row, text};
pub use statistics::Statistics;
pub use table::{
    CONFIGURATIONS_FILE, FAMILIES_FILE, HELD_OUT_FILES, OWN_PROCESS_FILE, SETTLED_FILE, TABLE_PATH, files, render_table,
};
