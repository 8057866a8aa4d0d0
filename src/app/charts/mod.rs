//! Charts. They draw the figures of a report and compute none; colours come from the style sheet.

mod axis;
mod bar;
mod brush;
mod canvas;
mod download;
mod frame;
mod line_chart;
mod lines;
mod palette;
mod plane;
mod scale;
mod surface;
mod svg;
mod table;
mod timeline;

pub use axis::{Axis, Unit};
pub use bar::{Bar, Segment};
pub use canvas::Canvas;
pub use download::save_text;
pub use frame::{ChartFrame, Figure};
pub use line_chart::{Limit, LineChart, Mark, Measured, Series};
pub use lines::{LineSwatch, Lines};
pub use palette::{Palette, kind_class, part_class};
pub use scale::{tick_label, ticks};
pub use table::Table;
pub use timeline::{Plot, TimelineChart};
