//! Drawing. Charts take figures from a report and compute none; colours come from the style sheet.

mod bar;
mod brush;
mod canvas;
mod palette;
mod scale;
mod timeline;

pub use bar::{Bar, Segment};
pub use canvas::Canvas;
pub use palette::{Palette, kind_class, part_class};
pub use scale::tick_label;
pub use timeline::{Plot, TimelineChart};
