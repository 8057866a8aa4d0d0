//! Results in the formats of continuous integration.

mod check_text;
mod document;
mod junit;
mod markdown;
mod sarif;

pub use check_text::render as check_text;
pub use document::{CheckDocument, CheckedRun};
pub use junit::render as junit;
pub use markdown::render as markdown;
pub use sarif::render as sarif;
