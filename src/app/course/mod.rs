//! The course: pages defined by data, with a few kinds of block.
//!
//! `parts/PART.json` holds what does not depend on the language: rows, their blocks, formulas, setups and the course's
//! figures. `locales/LANGUAGE/course/PART.json` holds the texts of each row, `words.json` beside it those shared by all pages.
//! `cargo xtask build` merges both into one file per language.
//!
//! Everything here is pure: it computes what a block shows. `pages/course` draws it, and asks the engine for the setups.

mod book;
mod cases;
mod chart;
mod exercise;
mod figure;
mod given;
mod links;
mod marks;
mod rich;
#[cfg(test)]
mod tests;
mod tree;

pub use book::{Block, Book, Row, items, text};
pub use cases::{Case, Columns, Known, Outcome, cases};
pub use chart::{Drawing, Shape, WIDTH};
pub use exercise::{Verdict, asked, check, task};
pub use figure::{Line, drawings, is_printed, lines, sheet};
pub use given::{Given, Input, inputs};
pub use links::Links;
pub use marks::Marks;
pub use rich::{Span, spans};
pub use tree::{START, Tree};
