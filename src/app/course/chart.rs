//! Small drawings of numbers: curve, bars, squares. Colours come from the style sheet.

use vramscope_course::{List, Unit, write_number};

use super::given::amount;

/// Width of a drawing in SVG units.
pub const WIDTH: f64 = 640.0;
/// Left edge of the plot, after the axis labels.
const LEFT: f64 = 84.0;
/// CSS classes of the rows of bars, which repeat.
const COLUMNS: [&str; 4] = [
    "column column-0",
    "column column-1",
    "column column-2",
    "column column-3",
];

/// A drawing in SVG units; without shapes where the numbers cannot be drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawing {
    /// Height.
    pub height: f64,
    /// Description.
    pub label: String,
    /// True if the description is shown below the drawing.
    pub has_caption: bool,
    /// Shapes, from back to front.
    pub shapes: Vec<Shape>,
}

/// A shape of a drawing.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A path.
    Path {
        /// CSS class.
        class: &'static str,
        /// Commands, as in the attribute `d`.
        commands: String,
    },
    /// A curve through points.
    Curve(Vec<(f64, f64)>),
    /// A point of the curve.
    Dot(f64, f64),
    /// A rectangle.
    Rect {
        /// CSS class.
        class: &'static str,
        /// Left edge and top.
        from: (f64, f64),
        /// Width and height.
        size: (f64, f64),
    },
    /// A line of text.
    Text {
        /// Position of the anchor on the base line.
        at: (f64, f64),
        /// Part of the text at that position: `start`, `middle` or `end`.
        anchor: &'static str,
        /// Words.
        words: String,
    },
}

/// A named row of bars.
pub struct Bars {
    /// Name of the row.
    pub label: String,
    /// Start of each bar.
    pub starts: List,
    /// Length of each bar.
    pub lengths: List,
}

impl Drawing {
    fn new(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            ..Self::default()
        }
    }

    fn text(&mut self, at: (f64, f64), anchor: &'static str, words: String) {
        self.shapes.push(Shape::Text { at, anchor, words });
    }

    fn path(&mut self, class: &'static str, commands: String) {
        self.shapes.push(Shape::Path { class, commands });
    }

    fn rect(&mut self, class: &'static str, from: (f64, f64), size: (f64, f64)) {
        self.shapes.push(Shape::Rect { class, from, size });
    }
}

/// Draws a curve through points and marks the reader's own value.
pub fn curve(points: &[(f64, f64)], at: (f64, f64), unit: Unit, label: &str) -> Drawing {
    const HEIGHT: f64 = 200.0;
    const BOTTOM: f64 = 172.0;
    let mut out = Drawing::new(label);
    let highest = points.iter().map(|p| p.1).fold(at.1, f64::max);
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return out;
    };
    if !(highest > 0.0 && highest.is_finite() && last.0 > first.0) {
        return out;
    }
    out.height = HEIGHT;
    let x = |v: f64| LEFT + (v - first.0) / (last.0 - first.0) * (WIDTH - LEFT - 24.0);
    let y = |v: f64| BOTTOM - v / highest * (BOTTOM - 20.0);
    let decimals = if highest / unit.size < 20.0 { 2 } else { 0 };
    for share in [0.0, 0.5, 1.0] {
        let level = y(highest * share);
        out.path("grid", format!("M{LEFT} {level:.1}H{:.0}", WIDTH - 24.0));
        let words = amount(&(highest * share).into(), unit, decimals);
        out.text((LEFT - 8.0, level + 4.0), "end", words);
    }
    for value in [first.0, (first.0 + last.0) / 2.0, last.0] {
        out.text((x(value), HEIGHT - 8.0), "middle", write_number(value, 0));
    }
    let curve = points.iter().map(|p| (x(p.0), y(p.1)));
    out.shapes.push(Shape::Curve(curve.collect()));
    if (first.0..=last.0).contains(&at.0) {
        out.shapes.push(Shape::Dot(x(at.0), y(at.1)));
    }
    out
}

/// Draws rows of bars on one scale, with an optional limit line.
pub fn bars(rows: &[Bars], limit: Option<f64>, unit: Unit, decimals: usize, label: &str) -> Drawing {
    let mut out = Drawing::new(label);
    let end = |row: &Bars| {
        let bars = row.starts.0.iter().zip(&row.lengths.0);
        bars.map(|(start, length)| start + length).fold(0.0, f64::max)
    };
    let longest = rows.iter().map(end).fold(limit.unwrap_or(0.0), f64::max);
    if !(longest > 0.0 && longest.is_finite()) {
        return out;
    }
    let named = rows.iter().any(|row| !row.label.is_empty());
    let left = if named { 200.0 } else { 8.0 };
    let x = |v: f64| left + v / longest * (WIDTH - left - 110.0);
    let mut top = 6.0;
    for (row, column) in rows.iter().zip(COLUMNS.iter().cycle()) {
        if named {
            out.text((left - 8.0, top + 15.0), "end", row.label.clone());
        }
        for (start, length) in row.starts.0.iter().zip(&row.lengths.0) {
            let over = limit.is_some_and(|limit| start + length > limit * 0.9);
            let class = if over { "column over" } else { column };
            let (from, width) = (x(*start), (x(start + length) - x(*start)).max(1.0));
            out.rect(class, (from, top), (width, 20.0));
            let words = amount(&(*length).into(), unit, decimals);
            out.text((from + width + 6.0, top + 15.0), "start", words);
            top += 26.0;
        }
    }
    if let Some(limit) = limit {
        out.path("limit", format!("M{:.1} 0V{top:.0}", x(limit)));
    }
    out.height = top + 2.0;
    out
}

/// Draws squares inside squares, side by side: images before and after padding.
pub fn squares(inner_sides: &List, outer_sides: &List, label: &str) -> Drawing {
    const GAP: f64 = 12.0;
    let mut out = Drawing::new(label);
    let total: f64 = outer_sides.sum();
    let largest = outer_sides.0.iter().copied().fold(0.0, f64::max);
    if !(total > 0.0 && total.is_finite()) {
        return out;
    }
    let room = WIDTH - GAP * outer_sides.0.len() as f64;
    let scale = (room / total).min(180.0 / largest).max(0.0);
    let mut left = 2.0;
    let bottom = largest * scale + 2.0;
    for (own, padded) in inner_sides.0.iter().zip(&outer_sides.0) {
        for (class, side) in [("padded", padded * scale), ("image", own * scale)] {
            out.rect(class, (left, bottom - side), (side, side));
        }
        let middle = left + padded * scale / 2.0;
        out.text((middle, bottom + 16.0), "middle", write_number(*own, 0));
        left += padded * scale + GAP;
    }
    out.height = bottom + 22.0;
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: &[f64]) -> List {
        List(values.to_vec())
    }

    #[test]
    fn bars_share_a_scale_and_those_near_the_limit_stand_out() {
        let row = |label: &str, length: f64| Bars {
            label: label.to_owned(),
            starts: list(&[0.0]),
            lengths: list(&[length]),
        };
        let drawn = bars(&[row("a", 50.0), row("b", 95.0)], Some(100.0), Unit::COUNT, 0, "bytes");
        let bars = drawn.shapes.iter().filter_map(|shape| match shape {
            Shape::Rect { class, from, size } => Some((*class, from.0, size.0)),
            _ => None,
        });
        let bars: Vec<_> = bars.collect();
        let unit = (WIDTH - 200.0 - 110.0) / 100.0;
        assert_eq!(
            bars,
            [
                ("column column-0", 200.0, 50.0 * unit),
                ("column over", 200.0, 95.0 * unit)
            ]
        );
    }

    #[test]
    fn what_cannot_be_drawn_has_no_shapes() {
        let none = list(&[0.0]);
        assert!(squares(&none, &none, "").shapes.is_empty());
        assert!(bars(&[], None, Unit::COUNT, 0, "").shapes.is_empty());
        assert!(
            curve(&[(0.0, f64::INFINITY), (1.0, 1.0)], (0.0, 0.0), Unit::COUNT, "")
                .shapes
                .is_empty()
        );
        assert_eq!(squares(&list(&[1.0]), &list(&[2.0]), "").shapes.len(), 3);
    }
}
