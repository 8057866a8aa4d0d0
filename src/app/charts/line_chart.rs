//! Line chart with limits, marks and measured points.

mod content;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use vramscope_engine::order::sort_by;

use super::axis::Axis;
use super::brush::{Area, Brush, Drawn, Point};
use super::palette::Palette;
use super::plane::Plane;
use super::surface::Surface;

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name.
    pub name: String,
    /// Index of its colour and dash pattern.
    pub style: usize,
    /// Values by rising x; `None` where the curve has no value.
    pub points: Vec<(f64, Option<f64>)>,
    /// Measured points.
    pub measured: Vec<Measured>,
}

/// A measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Position along the horizontal axis.
    pub x: f64,
    /// Measured value.
    pub y: f64,
    /// Lowest and highest measurement.
    pub range: Option<[f64; 2]>,
}

/// A horizontal limit line.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Value of the limit.
    pub y: f64,
    /// Name of the limit.
    pub name: String,
}

/// A marked point.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Position along the horizontal axis.
    pub x: f64,
    /// Position along the vertical axis.
    pub y: f64,
    /// Text beside it.
    pub words: String,
}

/// Content of a line chart.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// The limits.
    pub limits: Vec<Limit>,
    /// The marks.
    pub marks: Vec<Mark>,
    /// Value under the pointer.
    pub pointed: Option<f64>,
}

/// Dash patterns, so that curves do not differ by colour alone.
const DASHES: [&[f64]; 7] = [
    &[],
    &[7.0, 3.0],
    &[2.0, 2.5],
    &[9.0, 3.0, 2.0, 3.0],
    &[4.0, 2.0],
    &[12.0, 4.0],
    &[1.5, 4.0],
];

/// Minimum left margin for the axis labels, in CSS pixels.
const LEFT: f64 = 66.0;
/// Bottom margin for labels and the title.
const BELOW: f64 = 40.0;
/// Top margin for the title of the vertical axis.
const ABOVE: f64 = 24.0;
/// Approximate number of labels on the vertical axis.
const TICKS: usize = 6;
/// Minimum distance between two lines of text, in CSS pixels.
const LINE: f64 = 14.0;

impl LineChart {
    /// Dash pattern of a style, for the legend.
    pub fn dash(style: usize) -> &'static [f64] {
        DASHES[style % DASHES.len()]
    }

    /// Horizontal positions, in CSS pixels, at which the plot begins and ends in a chart of this width.
    fn sides(&self, width: f64) -> [f64; 2] {
        let labels = self
            .y
            .ticks(TICKS)
            .into_iter()
            .map(|(_, label)| text_width(&label) + 12.0);
        [labels.fold(LEFT, f64::max), width - self.room_for_names(width)]
    }

    /// Right margin: holds the names of the curves if the chart is wide enough.
    fn room_for_names(&self, width: f64) -> f64 {
        let longest = self.series.iter().map(|s| text_width(&s.name)).fold(0.0, f64::max);
        if width < 560.0 || self.series.len() < 2 {
            14.0
        } else {
            longest + 18.0
        }
    }

    /// Returns the x value nearest to a horizontal position in CSS pixels.
    pub fn nearest(&self, at: f64, width: f64) -> Option<f64> {
        let [begin, end] = self.sides(width);
        let places = self.x.places();
        let share = ((at - begin) / (end - begin).max(1.0)).clamp(0.0, 1.0);
        let place = places.start + share * (places.end - places.start);
        let far = |value: &f64| (self.x.place(*value) - place).abs();
        self.values().into_iter().min_by(|a, b| far(a).total_cmp(&far(b)))
    }

    /// All x values, in rising order.
    pub fn values(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
        sort_by(&mut all, f64::total_cmp);
        all.dedup();
        all
    }

    /// Draws the chart.
    ///
    /// # Errors
    /// Fails if the surface cannot be drawn on.
    pub fn draw(&self, surface: Surface, palette: &Palette) -> Drawn {
        let ratio = surface.ratio();
        let root = surface.into_drawing_area();
        let brush = Brush {
            root: &root,
            ratio,
            palette,
        };
        if self.values().is_empty() {
            return Ok(());
        }
        let plane = self.plane(&brush, &root);
        self.grid(&brush, &plane)?;
        self.limits(&brush, &plane)?;
        self.pointer(&brush, &plane)?;
        for series in &self.series {
            self.curve(&brush, &plane, series)?;
        }
        self.names(&brush, &plane)?;
        self.marks(&brush, &plane)
    }

    fn plane(&self, brush: &Brush, root: &Area) -> Plane {
        let width = f64::from(root.dim_in_pixel().0) / brush.ratio;
        let [begin, end] = self.sides(width);
        let margins = [begin, width - end, ABOVE, BELOW].map(|css| brush.px(css));
        Plane::within(root, margins, self.x.places(), self.y.places())
    }

    fn at(&self, plane: &Plane, x: f64, y: f64) -> Point {
        plane.place(self.x.place(x), self.y.place(y.max(self.y.range.start)))
    }

    fn grid(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let Plane { columns, rows, .. } = plane;
        let style = brush.stroke(brush.palette.line.into(), 1.0);
        for (value, label) in self.y.ticks(TICKS) {
            let y = self.at(plane, self.x.range.start, value).1;
            brush.line([(columns.start, y), (columns.end, y)], style)?;
            let at = (columns.start - brush.px(8.0), y);
            brush.text(&label, at, brush.palette.muted, (HPos::Right, VPos::Center))?;
        }
        let wanted = f64::from(columns.end - columns.start) / brush.ratio / 72.0;
        for (value, label) in self.x.ticks(wanted as usize) {
            let x = self.at(plane, value, self.y.range.start).0;
            brush.line([(x, rows.start), (x, rows.end)], style)?;
            let at = (x, rows.end + brush.px(6.0));
            brush.text(&label, at, brush.palette.muted, (HPos::Center, VPos::Top))?;
        }
        let foot = (columns.end, rows.end + brush.px(22.0));
        brush.text(&self.x.title, foot, brush.palette.muted, (HPos::Right, VPos::Top))?;
        let head = (brush.px(4.0), brush.px(3.0));
        brush.text(&self.y.title, head, brush.palette.muted, (HPos::Left, VPos::Top))
    }
}

/// Estimates the width of a text in CSS pixels, slightly too large.
fn text_width(text: &str) -> f64 {
    6.6 * text
        .chars()
        .map(|c| if c > '\u{2e80}' { 2.0 } else { 1.0 })
        .sum::<f64>()
}
