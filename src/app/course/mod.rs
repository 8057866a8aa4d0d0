//! The course: pages that are data, drawn as HTML by a few kinds of block.
//!
//! `parts/PART.json` holds what does not depend on the language: the rows, their blocks, formulas, setups
//! and the course's figures. `LANGUAGE/PART.json` holds the texts of each row, and `LANGUAGE/words.json`
//! what all pages say. `cargo xtask build` puts both into one file for each language beside the page.
//!
//! Everything here is pure: [`Page`] gives texts of HTML, and `pages/course` puts them into the document
//! and asks the engine for the setups.

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
