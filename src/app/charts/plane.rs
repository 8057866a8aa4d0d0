use std::ops::Range;

use super::brush::{Area, Point};

/// The part of a canvas that holds a plot, and the values along its sides.
pub struct Plane {
    /// From left to right, in the canvas's own pixels.
    pub columns: Range<i32>,
    /// From top to bottom.
    pub rows: Range<i32>,
    x: Range<f64>,
    y: Range<f64>,
}

impl Plane {
    /// What is left of a canvas within margins: left, right, above, below.
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

    /// Where values lie; the second grows upwards.
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
