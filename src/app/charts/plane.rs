//! Plot area of a chart.

use std::ops::Range;

use super::brush::{Area, Point};

/// Plot area of a canvas, with the value ranges of its two axes.
pub struct Plane {
    /// Horizontal extent in the canvas's own pixels.
    pub columns: Range<i32>,
    /// Vertical extent in the canvas's own pixels, from top to bottom.
    pub rows: Range<i32>,
    x: Range<f64>,
    y: Range<f64>,
}

impl Plane {
    /// Plot area inside margins: left, right, top, bottom.
    pub fn within(root: &Area, [left, right, above, below]: [i32; 4], x: Range<f64>, y: Range<f64>) -> Self {
        let (width, height) = root.dim_in_pixel();
        let side = |begin: i32, end: u32, margin: i32| begin..(end as i32 - margin).max(begin);
        Self {
            columns: side(left, width, right),
            rows: side(above, height, below),
            x,
            y,
        }
    }

    /// Maps a pair of values to a point; y grows upwards.
    pub fn place(&self, x: f64, y: f64) -> Point {
        let along = |value: f64, side: &Range<f64>| (value - side.start) / (side.end - side.start);
        let column = f64::from(self.columns.end - self.columns.start) * along(x, &self.x);
        let row = f64::from(self.rows.end - self.rows.start) * along(y, &self.y);
        (
            self.columns.start + column.round() as i32,
            self.rows.end - row.round() as i32,
        )
    }
}
