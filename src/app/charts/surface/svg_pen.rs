//! Writes paths, circles and texts as SVG. The SVG backend of plotters has no dashes.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendCoord, BackendStyle, BackendTextStyle};

use super::{Done, refused};
use crate::charts::svg;

/// Body of an SVG in progress.
pub(super) struct SvgPen {
    /// Elements written so far.
    pub text: Rc<RefCell<String>>,
    /// Dash and gap lengths of the following lines, in CSS pixels.
    pub dash: &'static [f64],
    /// SVG units per CSS pixel.
    pub ratio: f64,
}

impl SvgPen {
    /// Writes a path of straight lines, filled or stroked.
    pub fn path(&self, points: impl Iterator<Item = BackendCoord>, style: &impl BackendStyle, fill: bool) -> Done {
        let mut text = self.text.borrow_mut();
        text.push_str("<path d=\"");
        for (i, (x, y)) in points.enumerate() {
            write!(text, "{}{x} {y}", if i == 0 { 'M' } else { 'L' }).map_err(refused)?;
        }
        text.push('"');
        self.style(&mut text, style, fill)
    }

    /// Writes a circle, filled or stroked.
    pub fn circle(&self, (x, y): BackendCoord, radius: u32, style: &impl BackendStyle, fill: bool) -> Done {
        let mut text = self.text.borrow_mut();
        write!(text, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"").map_err(refused)?;
        self.style(&mut text, style, fill)
    }

    /// Closes an element with its colour and stroke.
    fn style(&self, text: &mut String, style: &impl BackendStyle, fill: bool) -> Done {
        let color = svg::rgba(style.color());
        if fill {
            return write!(text, " fill=\"{color}\"/>").map_err(refused);
        }
        let width = style.stroke_width();
        write!(text, " fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"").map_err(refused)?;
        if !self.dash.is_empty() {
            let dash: Vec<String> = self.dash.iter().map(|d| (d * self.ratio).to_string()).collect();
            write!(text, " stroke-dasharray=\"{}\"", dash.join(" ")).map_err(refused)?;
        }
        text.push_str("/>");
        Ok(())
    }

    /// Writes a text with its anchor at a point.
    pub fn text(&self, words: &str, style: &impl BackendTextStyle, at: BackendCoord) -> Done {
        let (anchor, size) = (style.anchor(), style.size());
        let anchored = match anchor.h_pos {
            HPos::Left => "start",
            HPos::Right => "end",
            HPos::Center => "middle",
        };
        // SVG viewers differ in their support of other baselines, so text is shifted from the alphabetic one.
        let down = match anchor.v_pos {
            VPos::Top => 0.8,
            VPos::Center => 0.35,
            VPos::Bottom => -0.2,
        };
        write!(
            self.text.borrow_mut(),
            "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" text-anchor=\"{anchored}\" fill=\"{}\">{}</text>",
            at.0,
            f64::from(at.1) + down * size,
            svg::rgba(style.color()),
            svg::escaped(words)
        )
        .map_err(refused)
    }
}
