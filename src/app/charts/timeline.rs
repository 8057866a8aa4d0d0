//! The memory of one step, stacked by kind, drawn on a canvas.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters_canvas::CanvasBackend;
use vramscope_engine::report::{Instant, Timeline};
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;
use web_sys::HtmlCanvasElement;

use super::palette::Palette;
use super::scale::{tick_label, ticks};

type Area<'a> = DrawingArea<CanvasBackend, Shift>;
type Chart<'a> = ChartContext<'a, CanvasBackend, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The part of the canvas that holds the curve, in CSS pixels from each side.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    /// Room for the labels of the byte axis.
    pub left: f64,
    /// Room at the right.
    pub right: f64,
    /// Room for the names of the phases.
    pub top: f64,
    /// Room below.
    pub bottom: f64,
}

impl Plot {
    /// The margins of the timeline.
    pub const TIMELINE: Self = Self {
        left: 62.0,
        right: 10.0,
        top: 26.0,
        bottom: 8.0,
    };
}

/// What the chart shows.
#[derive(Debug, Clone)]
pub struct TimelineChart {
    /// Number of events.
    pub len: usize,
    /// Instants with live bytes by kind, in time order.
    pub columns: Vec<(Instant, [Bytes; Kind::COUNT])>,
    /// Begin of each phase and its name.
    pub phases: Vec<(Instant, String)>,
    /// The instant of the peak, and the words beside its mark.
    pub peak: (Instant, Bytes, String),
    /// What the allocator can have, with the card's name.
    pub limit: Option<(Bytes, String)>,
}

impl TimelineChart {
    /// The stacked curve with at most `points` columns.
    pub fn of(timeline: &Timeline, points: usize, phases: Vec<(Instant, String)>, peak: String) -> Self {
        let instant = timeline.peak_instant();
        let height = timeline.at(instant).iter().map(|(_, bytes)| *bytes).sum();
        Self {
            len: timeline.len(),
            columns: timeline.columns(points),
            phases,
            peak: (instant, height, peak),
            limit: None,
        }
    }

    /// Draws on a canvas that has `ratio` pixels for each CSS pixel.
    ///
    /// # Errors
    /// When the canvas cannot be drawn on.
    pub fn draw(&self, canvas: HtmlCanvasElement, ratio: f64, palette: &Palette) -> Drawn {
        let Some(backend) = CanvasBackend::with_canvas_object(canvas) else {
            return Ok(());
        };
        let root = backend.into_drawing_area();
        let brush = Brush { ratio, palette };
        let mut chart = brush.chart(&root, self)?;
        brush.grid(&root, &chart, self)?;
        brush.stack(&mut chart, self)?;
        brush.phases(&root, &chart, self)?;
        brush.limit(&root, &chart, self)?;
        brush.peak(&root, &chart, self)
    }

    fn top(&self) -> f64 {
        self.peak.1.get() as f64 * 1.12
    }
}

struct Brush<'p> {
    ratio: f64,
    palette: &'p Palette,
}

impl Brush<'_> {
    fn px(&self, css: f64) -> i32 {
        (css * self.ratio).round() as i32
    }

    fn chart<'a>(&self, root: &'a Area<'a>, shown: &TimelineChart) -> Result<Chart<'a>, Box<dyn std::error::Error>> {
        let plot = Plot::TIMELINE;
        let chart = ChartBuilder::on(root)
            .margin_left(self.px(plot.left))
            .margin_right(self.px(plot.right))
            .margin_top(self.px(plot.top))
            .margin_bottom(self.px(plot.bottom))
            .build_cartesian_2d(0.0..shown.len.max(1) as f64, 0.0..shown.top().max(1.0))?;
        Ok(chart)
    }

    fn text(&self, color: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
        const FACES: &str = "-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', system-ui, sans-serif";
        let mut style = TextStyle::from((FACES, 11.5 * self.ratio).into_font()).pos(Pos::new(h, v));
        style.color = color.to_backend_color();
        style
    }

    /// Room that a text takes, a little too much: ideographs are twice as wide as letters.
    fn width(&self, text: &str) -> i32 {
        let letters: f64 = text.chars().map(|c| if c > '\u{2e80}' { 2.0 } else { 1.0 }).sum();
        self.px(6.6 * letters)
    }

    fn grid(&self, root: &Area, chart: &Chart, shown: &TimelineChart) -> Drawn {
        let style = self.text(self.palette.muted, HPos::Right, VPos::Center);
        let right = chart.plotting_area().get_pixel_range().0.end;
        for tick in ticks(Bytes::new(shown.top() as u64), 5) {
            let (x, y) = chart.backend_coord(&(0.0, tick.get() as f64));
            root.draw(&PathElement::new(
                [(x, y), (right, y)],
                self.palette.line.stroke_width(self.px(1.0) as u32),
            ))?;
            root.draw(&Text::new(tick_label(tick), (x - self.px(8.0), y), style.clone()))?;
        }
        Ok(())
    }

    /// Kinds from the top of the stack down, each painted over by those below it, so that no seam
    /// of the background shows between two.
    fn stack(&self, chart: &mut Chart, shown: &TimelineChart) -> Drawn {
        for highest in (0..Kind::COUNT).rev() {
            let outline = outline(shown, |bytes| bytes[..=highest].iter().copied().sum());
            chart.draw_series([Polygon::new(outline.clone(), self.palette.kinds[highest].filled())])?;
            let edge = self.palette.surface.mix(0.65).stroke_width(self.px(1.0) as u32);
            chart.draw_series([PathElement::new(outline, edge)])?;
        }
        Ok(())
    }

    fn phases(&self, root: &Area, chart: &Chart, shown: &TimelineChart) -> Drawn {
        let (columns, rows) = chart.plotting_area().get_pixel_range();
        let mut free_from = i32::MIN;
        for (begin, name) in &shown.phases {
            let x = chart.backend_coord(&(*begin as f64, 0.0)).0;
            let line = self.palette.muted.mix(0.55).stroke_width(self.px(1.0) as u32);
            root.draw(&PathElement::new([(x, self.px(4.0)), (x, rows.end)], line))?;
            let width = self.width(name);
            let at = (x + self.px(5.0)).min(columns.end - width);
            // A name that would run into the last one is left out; the table of phases has it.
            if at >= free_from {
                let behind = [(at, 0), (at + width, self.px(18.0))];
                root.draw(&Rectangle::new(behind, self.palette.surface.filled()))?;
                let style = self.text(self.palette.muted, HPos::Left, VPos::Top);
                root.draw(&Text::new(name.clone(), (at, self.px(4.0)), style))?;
                free_from = at + width + self.px(4.0);
            }
        }
        Ok(())
    }

    /// Where the card ends, if the curve comes near it.
    fn limit(&self, root: &Area, chart: &Chart, shown: &TimelineChart) -> Drawn {
        let Some((bytes, name)) = &shown.limit else {
            return Ok(());
        };
        let height = bytes.get() as f64;
        if height > shown.top() {
            return Ok(());
        }
        let (columns, _) = chart.plotting_area().get_pixel_range();
        let y = chart.backend_coord(&(0.0, height)).1;
        let line = self.palette.limit.stroke_width(self.px(1.5) as u32);
        root.draw(&PathElement::new([(columns.start, y), (columns.end, y)], line))?;
        let width = self.width(name);
        let begin = columns.start + self.px(6.0);
        let behind = [
            (begin - self.px(3.0), y - self.px(19.0)),
            (begin + width, y - self.px(3.0)),
        ];
        root.draw(&Rectangle::new(behind, self.palette.surface.mix(0.85).filled()))?;
        let style = self.text(self.palette.limit, HPos::Left, VPos::Bottom);
        root.draw(&Text::new(name.clone(), (begin, y - self.px(4.0)), style))?;
        Ok(())
    }

    fn peak(&self, root: &Area, chart: &Chart, shown: &TimelineChart) -> Drawn {
        let (instant, bytes, words) = &shown.peak;
        let (x, y) = chart.backend_coord(&(*instant as f64, bytes.get() as f64));
        let (columns, _) = chart.plotting_area().get_pixel_range();
        let ring = self.palette.surface.filled();
        root.draw(&Circle::new((x, y), self.px(5.0), ring))?;
        root.draw(&Circle::new((x, y), self.px(3.5), self.palette.ink.filled()))?;
        // Above the mark, but within the plot.
        let half = self.width(words) / 2 + self.px(3.0);
        let middle = x.clamp(columns.start + half, (columns.end - half).max(columns.start + half));
        let style = self.text(self.palette.ink, HPos::Center, VPos::Bottom);
        let behind = [(middle - half, y - self.px(24.0)), (middle + half, y - self.px(8.0))];
        root.draw(&Rectangle::new(behind, self.palette.surface.mix(0.85).filled()))?;
        root.draw(&Text::new(words.clone(), (middle, y - self.px(9.0)), style))?;
        Ok(())
    }
}

/// Steps: a total holds from its instant to the next.
fn outline(shown: &TimelineChart, height: impl Fn(&[Bytes; Kind::COUNT]) -> Bytes) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    let mut last = None;
    for (instant, bytes) in &shown.columns {
        let (x, y) = (*instant as f64, height(bytes).get() as f64);
        points.extend(last.map(|before| (x, before)));
        points.push((x, y));
        last = Some(y);
    }
    points.extend(last.map(|y| (shown.len as f64, y)));
    points.push((shown.len as f64, 0.0));
    points
}
