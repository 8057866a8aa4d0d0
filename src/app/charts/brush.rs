//! What every chart is drawn with: measures in CSS pixels, on a canvas that has more of its own.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters_canvas::CanvasBackend;

use super::palette::Palette;

/// The whole canvas.
pub type Area = DrawingArea<CanvasBackend, Shift>;

/// Why a canvas could not be drawn on.
pub type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A point in the canvas's own pixels.
pub type Point = (i32, i32);

const FACES: &str = "-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', system-ui, sans-serif";
const TEXT_SIZE: f64 = 11.5;

/// A canvas, its pixels per CSS pixel, and the colours in force.
pub struct Brush<'a> {
    /// The canvas.
    pub root: &'a Area,
    /// Its pixels for each CSS pixel.
    pub ratio: f64,
    /// Colours.
    pub palette: &'a Palette,
}

impl Brush<'_> {
    /// CSS pixels in the canvas's own.
    pub fn px(&self, css: f64) -> i32 {
        (css * self.ratio).round() as i32
    }

    /// A stroke of this many CSS pixels.
    pub fn stroke(&self, color: RGBAColor, css: f64) -> ShapeStyle {
        color.stroke_width(self.px(css).max(1) as u32)
    }

    /// Room that a text takes, a little too much: ideographs are twice as wide as letters.
    pub fn width(&self, text: &str) -> i32 {
        let letters: f64 = text.chars().map(|c| if c > '\u{2e80}' { 2.0 } else { 1.0 }).sum();
        self.px(6.6 * letters)
    }

    /// A line through points.
    pub fn line(&self, points: impl Into<Vec<Point>>, style: ShapeStyle) -> Drawn {
        self.root.draw(&PathElement::new(points, style))?;
        Ok(())
    }

    /// A text at a point.
    pub fn text(&self, words: &str, at: Point, color: RGBColor, anchor: (HPos, VPos)) -> Drawn {
        let font = (FACES, TEXT_SIZE * self.ratio).into_font();
        let mut style = TextStyle::from(font).pos(Pos::new(anchor.0, anchor.1));
        style.color = color.to_backend_color();
        self.root.draw(&Text::new(words.to_owned(), at, style))?;
        Ok(())
    }

    /// A text whose lower left corner is at a point, on a ground that lifts it off what is behind.
    pub fn label(&self, words: &str, at: Point, color: RGBColor) -> Drawn {
        let (pad, height) = (self.px(3.0), self.px(16.0));
        let ground = [
            (at.0 - pad, at.1 - height),
            (at.0 + self.width(words), at.1 + self.px(1.0)),
        ];
        self.root
            .draw(&Rectangle::new(ground, self.palette.surface.mix(0.85).filled()))?;
        self.text(words, at, color, (HPos::Left, VPos::Bottom))
    }

    /// A marked point, ringed by the ground.
    pub fn dot(&self, at: Point) -> Drawn {
        self.root
            .draw(&Circle::new(at, self.px(5.0), self.palette.surface.filled()))?;
        self.root
            .draw(&Circle::new(at, self.px(3.5), self.palette.ink.filled()))?;
        Ok(())
    }
}
