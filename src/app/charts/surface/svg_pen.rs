//! Strokes, fills and texts, on a canvas or in an SVG.

use std::fmt::Write;

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendStyle};
use wasm_bindgen::JsValue;
use web_sys::CanvasRenderingContext2d;

use super::{Done, Pen, Surface, refused};
use crate::charts::svg;

impl Surface {
    /// A path of straight lines, filled or stroked.
    pub(super) fn path(&self, points: &[(f64, f64)], paint: &Paint) -> Done {
        if paint.color.alpha == 0.0 || points.is_empty() {
            return Ok(());
        }
        match &self.pen {
            Pen::Canvas(context) => {
                context.begin_path();
                for (i, (x, y)) in points.iter().enumerate() {
                    if i == 0 {
                        context.move_to(*x, *y);
                    } else {
                        context.line_to(*x, *y);
                    }
                }
                self.finish(context, paint)
            }
            Pen::Svg(text) => {
                let mut text = text.borrow_mut();
                text.push_str("<path d=\"");
                for (i, (x, y)) in points.iter().enumerate() {
                    write!(text, "{}{x} {y}", if i == 0 { 'M' } else { 'L' }).map_err(refused)?;
                }
                text.push('"');
                self.style(&mut text, paint)
            }
        }
    }

    pub(super) fn finish(&self, context: &CanvasRenderingContext2d, paint: &Paint) -> Done {
        let color = svg::rgba(paint.color);
        match paint.stroke {
            None => {
                context.set_fill_style_str(&color);
                context.fill();
            }
            Some(width) => {
                context.set_stroke_style_str(&color);
                context.set_line_width(width);
                let dash: js_sys::Array = self.dash.iter().map(|d| JsValue::from(d * self.ratio)).collect();
                context.set_line_dash(&dash).map_err(refused)?;
                context.stroke();
            }
        }
        Ok(())
    }

    pub(super) fn style(&self, text: &mut String, paint: &Paint) -> Done {
        let color = svg::rgba(paint.color);
        match paint.stroke {
            None => write!(text, " fill=\"{color}\"/>"),
            Some(width) => {
                write!(text, " fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"").map_err(refused)?;
                if !self.dash.is_empty() {
                    let dash: Vec<String> = self.dash.iter().map(|d| (d * self.ratio).to_string()).collect();
                    write!(text, " stroke-dasharray=\"{}\"", dash.join(" ")).map_err(refused)?;
                }
                text.write_str("/>")
            }
        }
        .map_err(refused)
    }

    pub(super) fn write_text(
        &self,
        words: &str,
        font: &Font,
        at: (f64, f64),
        anchor: (HPos, VPos),
        color: BackendColor,
    ) -> Done {
        match &self.pen {
            Pen::Canvas(context) => {
                context.set_text_baseline(match anchor.1 {
                    VPos::Top => "top",
                    VPos::Center => "middle",
                    VPos::Bottom => "bottom",
                });
                context.set_text_align(match anchor.0 {
                    HPos::Left => "left",
                    HPos::Right => "right",
                    HPos::Center => "center",
                });
                context.set_fill_style_str(&svg::rgba(color));
                context.set_font(&format!("{}px {}", font.size, font.family));
                context.fill_text(words, at.0, at.1).map_err(refused)
            }
            Pen::Svg(text) => {
                let anchored = match anchor.0 {
                    HPos::Left => "start",
                    HPos::Right => "end",
                    HPos::Center => "middle",
                };
                // Programs differ in baselines, so the alphabetic one is used and moved.
                let down = match anchor.1 {
                    VPos::Top => 0.8,
                    VPos::Center => 0.35,
                    VPos::Bottom => -0.2,
                };
                write!(
                    text.borrow_mut(),
                    "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{anchored}\" fill=\"{}\">{}</text>",
                    at.0,
                    at.1 + down * font.size,
                    font.size,
                    svg::rgba(color),
                    svg::escaped(words)
                )
                .map_err(refused)
            }
        }
    }
}

/// How something is painted.
pub(super) struct Paint {
    pub color: BackendColor,
    /// Width of the line; filled without one.
    pub stroke: Option<f64>,
}

impl Paint {
    pub fn of(style: &impl BackendStyle, fill: bool) -> Self {
        Self {
            color: style.color(),
            stroke: (!fill).then(|| f64::from(style.stroke_width())),
        }
    }
}

/// The face of a text.
pub(super) struct Font {
    pub size: f64,
    pub family: String,
}
