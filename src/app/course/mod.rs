//! The course: pages defined by data and rendered as HTML from a few kinds of block.
//!
//! `parts/PART.json` holds what does not depend on the language: rows, their blocks, formulas, setups and the course's
//! figures. `LANGUAGE/PART.json` holds the texts of each row, `LANGUAGE/words.json` the texts shared by all pages.
//! `cargo xtask build` merges both into one file per language.
//!
//! Everything here is pure: [`Page`] renders HTML, and `pages/course` inserts it into the document and asks the engine
//! for the setups.

mod blocks;
mod book;
mod cases;
mod chart;
mod exercise;
mod figure;
mod given;
mod html;
mod marks;
mod page;
#[cfg(test)]
mod tests;
mod tree;

pub use book::Book;
pub use cases::Names;
pub use given::Given;
pub use marks::Marks;
pub use page::{Known, Page};
