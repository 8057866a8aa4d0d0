//! What charts are drawn on: a canvas, or the text of an SVG. One type, so that plotters is compiled once.

mod pen;

use std::cell::RefCell;
use std::fmt;
use std::fmt::Write;
use std::rc::Rc;

use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use self::pen::{Font, Paint};

/// A canvas or an SVG that plotters draws on.
pub struct Surface {
    size: (u32, u32),
    pen: Pen,
    /// Lengths of dashes and gaps of the lines that follow.
    dash: &'static [f64],
    /// Pixels for each of CSS's.
    ratio: f64,
}

enum Pen {
    Canvas(CanvasRenderingContext2d),
    Svg(Rc<RefCell<String>>),
}

/// Why a surface could not be drawn on.
#[derive(Debug)]
pub struct SurfaceError(String);

impl fmt::Display for SurfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SurfaceError {}

type Done = Result<(), DrawingErrorKind<SurfaceError>>;

fn refused(what: impl fmt::Debug) -> DrawingErrorKind<SurfaceError> {
    DrawingErrorKind::DrawingError(SurfaceError(format!("{what:?}")))
}

impl Surface {
    /// A canvas with `ratio` pixels for each CSS pixel; `None` where the browser gives no context.
    pub fn canvas(canvas: &HtmlCanvasElement, ratio: f64) -> Option<Self> {
        let context: CanvasRenderingContext2d = canvas.get_context("2d").ok()??.dyn_into().ok()?;
        Some(Self {
            size: (canvas.width(), canvas.height()),
            pen: Pen::Canvas(context),
            dash: &[],
            ratio,
        })
    }

    /// The body of an SVG with `ratio` units for each CSS pixel, written into `text`.
    pub fn svg(size: (u32, u32), ratio: f64, text: Rc<RefCell<String>>) -> Self {
        Self {
            size,
            pen: Pen::Svg(text),
            dash: &[],
            ratio,
        }
    }

    /// Pixels for each CSS pixel.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Paints all of it.
    pub fn fill(&self, color: BackendColor) {
        let (width, height) = whole((self.size.0 as i32, self.size.1 as i32));
        let corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)];
        // What refuses a ground refuses all that comes after, and that is told.
        self.path(&corners, &Paint { color, stroke: None }).ok();
    }

    /// Dashes and gaps, in CSS pixels, of the lines that follow; none for whole lines.
    pub fn set_dash(&mut self, dash: &'static [f64]) {
        self.dash = dash;
    }
}

fn whole(point: BackendCoord) -> (f64, f64) {
    (f64::from(point.0), f64::from(point.1))
}

/// A line along an axis lies between two rows of pixels, which would blur it.
fn sharpened(points: &mut [(f64, f64)]) {
    if let [a, b] = points {
        if a.0 == b.0 {
            (a.0, b.0) = (a.0 - 0.5, b.0 - 0.5);
        }
        if a.1 == b.1 {
            (a.1, b.1) = (a.1 - 0.5, b.1 - 0.5);
        }
    }
}

impl DrawingBackend for Surface {
    type ErrorType = SurfaceError;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Done {
        Ok(())
    }

    fn present(&mut self) -> Done {
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Done {
        self.draw_rect(point, (point.0 + 1, point.1 + 1), &color, true)
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Done {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S, fill: bool) -> Done {
        let (a, c) = (whole(from), whole(to));
        self.path(&[a, (c.0, a.1), c, (a.0, c.1), a], &Paint::of(style, fill))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Done {
        let mut points: Vec<_> = path.into_iter().map(whole).collect();
        sharpened(&mut points);
        self.path(&points, &Paint::of(style, false))
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Done {
        let points: Vec<_> = path.into_iter().map(whole).collect();
        self.path(&points, &Paint::of(style, true))
    }

    fn draw_circle<S: BackendStyle>(&mut self, center: BackendCoord, radius: u32, style: &S, fill: bool) -> Done {
        let (paint, (x, y)) = (Paint::of(style, fill), whole(center));
        match &self.pen {
            Pen::Canvas(context) => {
                context.begin_path();
                context
                    .arc(x, y, f64::from(radius), 0.0, std::f64::consts::TAU)
                    .map_err(refused)?;
                self.finish(context, &paint)
            }
            Pen::Svg(text) => {
                let mut text = text.borrow_mut();
                write!(text, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"").map_err(refused)?;
                self.style(&mut text, &paint)
            }
        }
    }

    fn draw_text<S: BackendTextStyle>(&mut self, words: &str, style: &S, at: BackendCoord) -> Done {
        let font = Font {
            size: style.size(),
            family: style.family().as_str().to_owned(),
        };
        let anchor = style.anchor();
        self.write_text(words, &font, whole(at), (anchor.h_pos, anchor.v_pos), style.color())
    }
}
