//! What the run costs on each card and on several of them, in a chunk of its own.

mod editor;
mod follow;
mod grams;
mod list;
mod panel;
mod table;

pub use panel::CostPanel;
