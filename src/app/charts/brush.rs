//! Drawing primitives of all charts: measures in CSS pixels on a canvas with its own resolution.

use plotters::coord::Shift;
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{BackendCoord, DrawingErrorKind};

use super::palette::Palette;
use super::surface::{Surface, SurfaceError};

/// Drawing area of a whole surface.
pub type Area = DrawingArea<Surface, Shift>;

/// Result of drawing.
pub type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A point in the surface's own pixels.
pub type Point = (i32, i32);

/// Font family of all texts.
pub const FACES: &str = "-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', system-ui, sans-serif";
const TEXT_SIZE: f64 = 11.5;

/// A drawing area, its resolution, and the current colours.
pub struct Brush<'a> {
    /// Drawing area.
    pub root: &'a Area,
    /// Surface pixels per CSS pixel.
    pub ratio: f64,
    /// Current colours.
    pub palette: &'a Palette,
}

impl Brush<'_> {
    /// Converts CSS pixels to surface pixels.
    pub fn px(&self, css: f64) -> i32 {
        (css * self.ratio).round() as i32
    }

    /// Stroke style with a width in CSS pixels.
    pub fn stroke(&self, color: RGBAColor, css: f64) -> ShapeStyle {
        color.stroke_width(self.px(css).max(1) as u32)
    }

    /// Estimates the width of a text, slightly too large; ideographs count as two letters.
    pub fn width(&self, text: &str) -> i32 {
        let letters: f64 = text.chars().map(|c| if c > '\u{2e80}' { 2.0 } else { 1.0 }).sum();
        self.px(6.6 * letters)
    }

    /// Draws a line through points.
    pub fn line(&self, points: impl Into<Vec<Point>>, style: ShapeStyle) -> Drawn {
        self.root.draw(&PathElement::new(points, style))?;
        Ok(())
    }

    /// Fills an outline.
    pub fn area(&self, outline: Vec<Point>, color: RGBColor) -> Drawn {
        self.root.draw(&Polygon::new(outline, color.filled()))?;
        Ok(())
    }

    /// Draws a dashed line with dash and gap lengths in CSS pixels; solid if there are none.
    pub fn dashed(&self, points: Vec<Point>, style: ShapeStyle, dash: &'static [f64]) -> Drawn {
        self.root.draw(&Dashed { points, style, dash })?;
        Ok(())
    }

    /// Draws a text at a point.
    pub fn text(&self, words: &str, at: Point, color: RGBColor, anchor: (HPos, VPos)) -> Drawn {
        let font = FontDesc::new(FontFamily::Name(FACES), TEXT_SIZE * self.ratio, FontStyle::Normal);
        let mut style = TextStyle::from(font).pos(Pos::new(anchor.0, anchor.1));
        style.color = color.to_backend_color();
        self.root.draw(&Text::new(words.to_owned(), at, style))?;
        Ok(())
    }

    /// Draws a text with its lower left corner at a point, on a translucent background that keeps it readable.
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

    /// Draws a dot with a ring in the background colour around it.
    pub fn dot(&self, at: Point) -> Drawn {
        self.dot_of(at, self.palette.ink)
    }

    /// Draws a dot in a colour, with a ring in the background colour around it.
    pub fn dot_of(&self, at: Point, color: RGBColor) -> Drawn {
        self.root
            .draw(&Circle::new(at, self.px(5.0), self.palette.surface.filled()))?;
        self.root.draw(&Circle::new(at, self.px(3.5), color.filled()))?;
        Ok(())
    }

    /// Draws a measured point as an open circle.
    pub fn ring(&self, at: Point, color: RGBColor) -> Drawn {
        self.root
            .draw(&Circle::new(at, self.px(4.0), self.palette.surface.filled()))?;
        let style = self.stroke(color.into(), 1.75);
        self.root.draw(&Circle::new(at, self.px(4.0), style))?;
        Ok(())
    }
}

/// A dashed line, which plotters does not support.
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
