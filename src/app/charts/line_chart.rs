//! Curves over one axis, with limits, marks and measured points.

mod content;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use vramscope_engine::order::sort_by;

use super::axis::Axis;
use super::brush::{Area, Brush, Drawn, Point};
use super::palette::Palette;
use super::plane::Plane;
use super::surface::Surface;

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Which of the palette's colours, with the pattern of the same number.
    pub style: usize,
    /// Values in rising order; nothing where there is none.
    pub points: Vec<(f64, Option<f64>)>,
    /// Measured points.
    pub measured: Vec<Measured>,
}

/// A measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Where.
    pub x: f64,
    /// What was measured.
    pub y: f64,
    /// Lowest and highest.
    pub range: Option<[f64; 2]>,
}

/// A horizontal line that curves are held against.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Where.
    pub y: f64,
    /// What ends there.
    pub name: String,
}

/// A marked point.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// How high.
    pub y: f64,
    /// The words beside it.
    pub words: String,
}

/// What the chart shows.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    /// The axis below.
    pub x: Axis,
    /// The axis at the left.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// The limits.
    pub limits: Vec<Limit>,
    /// The marks.
    pub marks: Vec<Mark>,
    /// The value pointed at.
    pub pointed: Option<f64>,
}

/// Patterns of lines, so that no curve is told by its colour alone.
const DASHES: [&[f64]; 7] = [
    &[],
    &[7.0, 3.0],
    &[2.0, 2.5],
    &[9.0, 3.0, 2.0, 3.0],
    &[4.0, 2.0],
    &[12.0, 4.0],
    &[1.5, 4.0],
];

/// Room at the left for labels of the axis, in CSS pixels; more where they need it.
const LEFT: f64 = 66.0;
/// Room below, for labels and the title.
const BELOW: f64 = 40.0;
/// Room above, for the title of the axis at the left.
const ABOVE: f64 = 24.0;
/// Labels of the axis at the left, about.
const TICKS: usize = 6;
/// Between two lines of text.
const LINE: f64 = 14.0;

impl LineChart {
    /// The pattern of a style, for the legend.
    pub fn dash(style: usize) -> &'static [f64] {
        DASHES[style % DASHES.len()]
    }

    /// The shares of the width at which the curves begin and end, for a chart so wide in CSS pixels.
    fn sides(&self, width: f64) -> [f64; 2] {
        let labels = self
            .y
            .ticks(TICKS)
            .into_iter()
            .map(|(_, label)| text_width(&label) + 12.0);
        [labels.fold(LEFT, f64::max), width - self.room_for_names(width)]
    }

    /// Room at the right: the names of the curves, where the chart is wide enough.
    fn room_for_names(&self, width: f64) -> f64 {
        let longest = self.series.iter().map(|s| text_width(&s.name)).fold(0.0, f64::max);
        if width < 560.0 || self.series.len() < 2 {
            14.0
        } else {
            longest + 18.0
        }
    }

    /// The value of the axis below that is nearest to a point of the chart, in CSS pixels.
    pub fn nearest(&self, at: f64, width: f64) -> Option<f64> {
        let [begin, end] = self.sides(width);
        let places = self.x.places();
        let share = ((at - begin) / (end - begin).max(1.0)).clamp(0.0, 1.0);
        let place = places.start + share * (places.end - places.start);
        let far = |value: &f64| (self.x.place(*value) - place).abs();
        self.values().into_iter().min_by(|a, b| far(a).total_cmp(&far(b)))
    }

    /// All values of the axis below, in rising order.
    pub fn values(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
        sort_by(&mut all, f64::total_cmp);
        all.dedup();
        all
    }

    /// Draws on a surface.
    ///
    /// # Errors
    /// When it cannot be drawn on.
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

/// What a text takes, in CSS pixels; a little too much.
fn text_width(text: &str) -> f64 {
    6.6 * text
        .chars()
        .map(|c| if c > '\u{2e80}' { 2.0 } else { 1.0 })
        .sum::<f64>()
}
