//! What every chart is drawn with: measures in CSS pixels, on a canvas that has more of its own.

use plotters::coord::Shift;
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{BackendCoord, DrawingErrorKind};

use super::palette::Palette;
use super::surface::{Surface, SurfaceError};

/// The whole surface.
pub type Area = DrawingArea<Surface, Shift>;

/// Why a surface could not be drawn on.
pub type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A point in the canvas's own pixels.
pub type Point = (i32, i32);

/// The faces of all texts.
pub const FACES: &str = "-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', system-ui, sans-serif";
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

    /// What lies within an outline.
    pub fn area(&self, outline: Vec<Point>, color: RGBColor) -> Drawn {
        self.root.draw(&Polygon::new(outline, color.filled()))?;
        Ok(())
    }

    /// A line of dashes and gaps, given in CSS pixels; a whole line where there are none.
    pub fn dashed(&self, points: Vec<Point>, style: ShapeStyle, dash: &'static [f64]) -> Drawn {
        self.root.draw(&Dashed { points, style, dash })?;
        Ok(())
    }

    /// A text at a point.
    pub fn text(&self, words: &str, at: Point, color: RGBColor, anchor: (HPos, VPos)) -> Drawn {
        let font = FontDesc::new(FontFamily::Name(FACES), TEXT_SIZE * self.ratio, FontStyle::Normal);
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
        self.dot_of(at, self.palette.ink)
    }

    /// A marked point in a colour, ringed by the ground.
    pub fn dot_of(&self, at: Point, color: RGBColor) -> Drawn {
        self.root
            .draw(&Circle::new(at, self.px(5.0), self.palette.surface.filled()))?;
        self.root.draw(&Circle::new(at, self.px(3.5), color.filled()))?;
        Ok(())
    }

    /// A measured point: an open circle.
    pub fn ring(&self, at: Point, color: RGBColor) -> Drawn {
        self.root
            .draw(&Circle::new(at, self.px(4.0), self.palette.surface.filled()))?;
        let style = self.stroke(color.into(), 1.75);
        self.root.draw(&Circle::new(at, self.px(4.0), style))?;
        Ok(())
    }
}

/// A line with a pattern, which plotters does not know.
struct Dashed {
    points: Vec<Point>,
    style: ShapeStyle,
    dash: &'static [f64],
}

impl<'a> PointCollection<'a, Point> for &'a Dashed {
    type Point = &'a Point;
    type IntoIter = &'a [Point];
    fn point_iter(self) -> &'a [Point] {
        &self.points
    }
}

impl Drawable<Surface> for Dashed {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        points: I,
        surface: &mut Surface,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<SurfaceError>> {
        surface.set_dash(self.dash);
        let drawn = surface.draw_path(points, &self.style);
        surface.set_dash(&[]);
        drawn
    }
}
