//! Drawing surface for plotters, either a canvas (plotters-canvas) or an SVG. A single type, so that plotters is
//! instantiated once.

mod svg_pen;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind};
use plotters_canvas::CanvasBackend;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use self::svg_pen::SvgPen;

/// A canvas or an SVG that plotters draws on.
pub struct Surface {
    size: (u32, u32),
    pen: Pen,
    /// Surface pixels per CSS pixel.
    ratio: f64,
}

enum Pen {
    /// Backend, and the canvas's context for the dashes that plotters does not support.
    Canvas(CanvasBackend, CanvasRenderingContext2d),
    Svg(SvgPen),
}

/// Error of a surface that cannot be drawn on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SurfaceError(String);

type Done = Result<(), DrawingErrorKind<SurfaceError>>;

fn refused(what: impl fmt::Debug) -> DrawingErrorKind<SurfaceError> {
    DrawingErrorKind::DrawingError(SurfaceError(format!("{what:?}")))
}

impl Surface {
    /// Wraps a canvas with `ratio` pixels per CSS pixel; `None` if the browser provides no context.
    pub fn canvas(canvas: &HtmlCanvasElement, ratio: f64) -> Option<Self> {
        let context = canvas.get_context("2d").ok()??.dyn_into().ok()?;
        let backend = CanvasBackend::with_canvas_object(canvas.clone())?;
        Some(Self {
            size: backend.get_size(),
            pen: Pen::Canvas(backend, context),
            ratio,
        })
    }

    /// Starts the body of an SVG with `ratio` units per CSS pixel, written into `text`.
    pub fn svg(size: (u32, u32), ratio: f64, text: Rc<RefCell<String>>) -> Self {
        let dash = &[];
        Self {
            size,
            pen: Pen::Svg(SvgPen { text, dash, ratio }),
            ratio,
        }
    }

    /// Surface pixels per CSS pixel.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Fills the whole surface.
    pub fn fill(&mut self, color: BackendColor) {
        let end = (self.size.0 as i32, self.size.1 as i32);
        // If this fails, everything drawn later fails too and is reported.
        self.draw_rect((0, 0), end, &color, true).ok();
    }

    /// Sets the dash and gap lengths of the following lines, in CSS pixels; empty for solid lines.
    pub fn set_dash(&mut self, dash: &'static [f64]) {
        match &mut self.pen {
            Pen::Canvas(_, context) => {
                let lengths: js_sys::Array = dash.iter().map(|d| JsValue::from(d * self.ratio)).collect();
                // Non-negative lengths are always accepted.
                context.set_line_dash(&lengths).ok();
            }
            Pen::Svg(pen) => pen.dash = dash,
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
        match &mut self.pen {
            Pen::Canvas(canvas, _) => canvas.draw_line(from, to, style).map_err(refused),
            Pen::Svg(pen) => pen.path([from, to].into_iter(), style, false),
        }
    }

    fn draw_rect<S: BackendStyle>(&mut self, a: BackendCoord, c: BackendCoord, style: &S, fill: bool) -> Done {
        match &mut self.pen {
            Pen::Canvas(canvas, _) => canvas.draw_rect(a, c, style, fill).map_err(refused),
            Pen::Svg(pen) => pen.path([a, (c.0, a.1), c, (a.0, c.1), a].into_iter(), style, fill),
        }
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Done {
        let points: Vec<_> = path.into_iter().collect();
        match (&mut self.pen, points.as_slice()) {
            // The backend aligns axis-parallel lines with the pixel grid, but not paths.
            (Pen::Canvas(canvas, _), &[from, to]) => canvas.draw_line(from, to, style).map_err(refused),
            (Pen::Canvas(canvas, _), _) => canvas.draw_path(points, style).map_err(refused),
            (Pen::Svg(pen), _) => pen.path(points.into_iter(), style, false),
        }
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(&mut self, path: I, style: &S) -> Done {
        match &mut self.pen {
            Pen::Canvas(canvas, _) => canvas.fill_polygon(path, style).map_err(refused),
            Pen::Svg(pen) => pen.path(path.into_iter(), style, true),
        }
    }

    fn draw_circle<S: BackendStyle>(&mut self, center: BackendCoord, radius: u32, style: &S, fill: bool) -> Done {
        match &mut self.pen {
            Pen::Canvas(canvas, _) => canvas.draw_circle(center, radius, style, fill).map_err(refused),
            Pen::Svg(pen) => pen.circle(center, radius, style, fill),
        }
    }

    fn draw_text<S: BackendTextStyle>(&mut self, words: &str, style: &S, at: BackendCoord) -> Done {
        match &mut self.pen {
            Pen::Canvas(canvas, _) => canvas.draw_text(words, style, at).map_err(refused),
            Pen::Svg(pen) => pen.text(words, style, at),
        }
    }
}
