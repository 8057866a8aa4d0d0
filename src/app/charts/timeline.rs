//! Draws the memory of one step, stacked by kind.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use vramscope_engine::report::Instant;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;

use super::brush::{Area, Brush, Drawn, Point};
use super::palette::Palette;
use super::plane::Plane;
use super::scale::{tick_label, ticks};
use super::surface::Surface;

/// Margins around the plot, in CSS pixels.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    /// Left margin, for the labels of the byte axis.
    pub left: f64,
    /// Right margin.
    pub right: f64,
    /// Top margin, for the names of the phases.
    pub top: f64,
    /// Bottom margin.
    pub bottom: f64,
}

impl Plot {
    /// Margins of the timeline.
    pub const TIMELINE: Self = Self {
        left: 62.0,
        right: 10.0,
        top: 26.0,
        bottom: 8.0,
    };
}

/// Content of the timeline chart.
#[derive(Debug, Clone)]
pub struct TimelineChart {
    /// Number of events.
    pub len: usize,
    /// Instants with live bytes by kind, in time order.
    pub columns: Vec<(Instant, [Bytes; Kind::COUNT])>,
    /// Start and name of each phase.
    pub phases: Vec<(Instant, String)>,
    /// Instant and bytes of the peak, and the text beside its mark.
    pub peak: (Instant, Bytes, String),
    /// Bytes available to the allocator, with the card's name.
    pub limit: Option<(Bytes, String)>,
}

impl TimelineChart {
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
        let plane = self.plane(&brush, &root);
        self.grid(&brush, &plane)?;
        self.stack(&brush, &plane)?;
        self.phases(&brush, &plane)?;
        self.limit(&brush, &plane)?;
        self.peak(&brush, &plane)
    }

    fn top(&self) -> f64 {
        self.peak.1.get() as f64 * 1.12
    }

    fn plane(&self, brush: &Brush, root: &Area) -> Plane {
        let Plot {
            left,
            right,
            top,
            bottom,
        } = Plot::TIMELINE;
        let margins = [left, right, top, bottom].map(|css| brush.px(css));
        Plane::within(root, margins, 0.0..self.len.max(1) as f64, 0.0..self.top().max(1.0))
    }

    fn grid(&self, brush: &Brush, plane: &Plane) -> Drawn {
        for tick in ticks(Bytes::new(self.top() as u64), 5) {
            let (x, y) = place(plane, 0, tick);
            let line = brush.stroke(brush.palette.line.into(), 1.0);
            brush.line([(x, y), (plane.columns.end, y)], line)?;
            let at = (x - brush.px(8.0), y);
            brush.text(&tick_label(tick), at, brush.palette.muted, (HPos::Right, VPos::Center))?;
        }
        Ok(())
    }

    /// Draws the kinds from the top of the stack down, each painted over by the ones below it, so that no seam of
    /// background shows between two.
    fn stack(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let edge = brush.stroke(brush.palette.surface.mix(0.65), 1.0);
        for highest in (0..Kind::COUNT).rev() {
            let outline = outline(self, plane, |bytes| bytes[..=highest].iter().copied().sum());
            brush.area(outline.clone(), brush.palette.kinds[highest])?;
            brush.line(outline, edge)?;
        }
        Ok(())
    }

    fn phases(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let mut free_from = i32::MIN;
        for (begin, name) in &self.phases {
            let (x, foot) = place(plane, *begin, Bytes::ZERO);
            let line = brush.stroke(brush.palette.muted.mix(0.55), 1.0);
            brush.line([(x, brush.px(4.0)), (x, foot)], line)?;
            let width = brush.width(name);
            let at = (x + brush.px(5.0)).min(plane.columns.end - width);
            // A name that would overlap the previous one is omitted; the table of phases lists it.
            if at >= free_from {
                brush.label(name, (at, brush.px(18.0)), brush.palette.muted)?;
                free_from = at + width + brush.px(4.0);
            }
        }
        Ok(())
    }

    /// Draws the card's limit if the curve comes close to it.
    fn limit(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let near = self
            .limit
            .as_ref()
            .filter(|(bytes, _)| bytes.get() as f64 <= self.top());
        let Some((bytes, name)) = near else { return Ok(()) };
        let (x, y) = place(plane, 0, *bytes);
        let line = brush.stroke(brush.palette.limit.into(), 1.5);
        brush.line([(x, y), (plane.columns.end, y)], line)?;
        brush.label(name, (x + brush.px(6.0), y - brush.px(4.0)), brush.palette.limit)
    }

    fn peak(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let (instant, bytes, words) = &self.peak;
        let (x, y) = place(plane, *instant, *bytes);
        brush.dot((x, y))?;
        // Above the mark but inside the plot.
        let (room, width) = (&plane.columns, brush.width(words));
        let begin = (x - width / 2).min(room.end - width).max(room.start);
        brush.label(words, (begin, y - brush.px(9.0)), brush.palette.ink)
    }
}

fn place(plane: &Plane, instant: Instant, bytes: Bytes) -> Point {
    plane.place(instant as f64, bytes.get() as f64)
}

/// Outlines a step curve: each total holds until the next instant.
fn outline(shown: &TimelineChart, plane: &Plane, height: impl Fn(&[Bytes; Kind::COUNT]) -> Bytes) -> Vec<Point> {
    let mut points = vec![place(plane, 0, Bytes::ZERO)];
    let mut last = None;
    for (instant, bytes) in &shown.columns {
        let bytes = height(bytes);
        points.extend(last.map(|before| place(plane, *instant, before)));
        points.push(place(plane, *instant, bytes));
        last = Some(bytes);
    }
    points.extend(last.map(|bytes| place(plane, shown.len, bytes)));
    points.push(place(plane, shown.len, Bytes::ZERO));
    points
}
