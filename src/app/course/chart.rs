//! Small SVG drawings of numbers: curve, bars, squares. Colours come from the style sheet.

use vramscope_course::{List, Unit, write_number};

use super::given::amount;
use super::html::escape;

/// Width of a drawing in SVG units.
const WIDTH: f64 = 640.0;
/// Left edge of the plot, after the axis labels.
const LEFT: f64 = 84.0;

/// A named row of bars.
pub struct Bars {
    /// Name of the row.
    pub label: String,
    /// Start of each bar.
    pub starts: List,
    /// Length of each bar.
    pub lengths: List,
}

fn svg(height: f64, label: &str, inner: &str) -> String {
    format!(
        "<svg class=\"course-drawing\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">{inner}</svg>",
        escape(label)
    )
}

fn note(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    )
}

/// Draws a curve through points and marks the reader's own value.
pub fn curve(points: &[(f64, f64)], at: (f64, f64), unit: Unit, label: &str) -> String {
    const HEIGHT: f64 = 200.0;
    const BOTTOM: f64 = 172.0;
    let highest = points.iter().map(|p| p.1).fold(at.1, f64::max);
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    if !(highest > 0.0 && highest.is_finite() && last.0 > first.0) {
        return String::new();
    }
    let x = |v: f64| LEFT + (v - first.0) / (last.0 - first.0) * (WIDTH - LEFT - 24.0);
    let y = |v: f64| BOTTOM - v / highest * (BOTTOM - 20.0);
    let line: Vec<_> = points.iter().map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1))).collect();
    let mut inner = String::new();
    for share in [0.0, 0.5, 1.0] {
        let level = y(highest * share);
        inner += &format!("<path class=\"grid\" d=\"M{LEFT} {level:.1}H{:.0}\"/>", WIDTH - 24.0);
        let text = amount(
            &(highest * share).into(),
            unit,
            if highest / unit.size < 20.0 { 2 } else { 0 },
        );
        inner += &note(LEFT - 8.0, level + 4.0, "end", &text);
    }
    for value in [first.0, (first.0 + last.0) / 2.0, last.0] {
        inner += &note(x(value), HEIGHT - 8.0, "middle", &write_number(value, 0));
    }
    inner += &format!("<polyline class=\"curve\" points=\"{}\"/>", line.join(" "));
    if (first.0..=last.0).contains(&at.0) {
        inner += &format!(
            "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"/>",
            x(at.0),
            y(at.1)
        );
    }
    svg(HEIGHT, label, &inner)
}

/// Draws rows of bars on one scale, with an optional limit line.
pub fn bars(rows: &[Bars], limit: Option<f64>, unit: Unit, decimals: usize, label: &str) -> String {
    let end = |row: &Bars| {
        let ends = row
            .starts
            .0
            .iter()
            .zip(&row.lengths.0)
            .map(|(start, length)| start + length);
        ends.fold(0.0, f64::max)
    };
    let longest = rows.iter().map(end).fold(limit.unwrap_or(0.0), f64::max);
    if !(longest > 0.0 && longest.is_finite()) {
        return String::new();
    }
    let named = rows.iter().any(|row| !row.label.is_empty());
    let left = if named { 200.0 } else { 8.0 };
    let x = |v: f64| left + v / longest * (WIDTH - left - 110.0);
    let (mut inner, mut top) = (String::new(), 6.0);
    for (place, row) in rows.iter().enumerate() {
        if named {
            inner += &note(left - 8.0, top + 15.0, "end", &row.label);
        }
        for (start, length) in row.starts.0.iter().zip(&row.lengths.0) {
            let over = limit.is_some_and(|limit| start + length > limit * 0.9);
            let class = if over {
                "column over".to_owned()
            } else {
                format!("column column-{}", place % 4)
            };
            let (from, width) = (x(*start), (x(start + length) - x(*start)).max(1.0));
            inner +=
                &format!("<rect class=\"{class}\" x=\"{from:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"20\"/>");
            let text = amount(&(*length).into(), unit, decimals);
            inner += &note(from + width + 6.0, top + 15.0, "start", &text);
            top += 26.0;
        }
    }
    if let Some(limit) = limit {
        inner += &format!("<path class=\"limit\" d=\"M{:.1} 0V{top:.0}\"/>", x(limit));
    }
    svg(top + 2.0, label, &inner)
}

/// Draws squares inside squares, side by side: images before and after padding.
pub fn squares(inner_sides: &List, outer_sides: &List, label: &str) -> String {
    const GAP: f64 = 12.0;
    let sides = || inner_sides.0.iter().zip(&outer_sides.0);
    let total: f64 = outer_sides.sum();
    let largest = outer_sides.0.iter().copied().fold(0.0, f64::max);
    if !(total > 0.0 && total.is_finite()) {
        return String::new();
    }
    let room = WIDTH - GAP * outer_sides.0.len() as f64;
    let scale = (room / total).min(180.0 / largest).max(0.0);
    let (mut inner, mut left) = (String::new(), 2.0);
    let bottom = largest * scale + 2.0;
    for (own, padded) in sides() {
        let square = |class: &str, side: f64| {
            let side = side * scale;
            format!(
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{side:.1}\" height=\"{side:.1}\"/>",
                bottom - side
            )
        };
        inner += &square("padded", *padded);
        inner += &square("image", *own);
        inner += &note(
            left + padded * scale / 2.0,
            bottom + 16.0,
            "middle",
            &write_number(*own, 0),
        );
        left += padded * scale + GAP;
    }
    svg(bottom + 22.0, label, &inner)
}
