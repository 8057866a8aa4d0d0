//! Draws the content of a line chart: limits, curves, measured points, names, marks.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use vramscope_engine::order::sort_by_key;

use super::{LINE, LineChart, Measured, Series};
use crate::charts::brush::{Brush, Drawn, Point};
use crate::charts::plane::Plane;

impl LineChart {
    /// Draws the limits inside the chart; overlapping labels are moved down.
    pub(super) fn limits(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let Plane { columns, rows, .. } = plane;
        let shown = self.limits.iter().filter(|limit| self.y.range.contains(&limit.y));
        let mut lines: Vec<(i32, &str)> = shown
            .map(|limit| (self.at(plane, self.x.range.start, limit.y).1, &*limit.name))
            .collect();
        sort_by_key(&mut lines, |line| *line);
        let labels = spread(lines.iter().map(|line| line.0), brush.px(LINE), rows.end);
        for ((y, name), label) in lines.into_iter().zip(labels) {
            let style = brush.stroke(brush.palette.limit.mix(0.8), 1.0);
            brush.dashed(vec![(columns.start, y), (columns.end, y)], style, &[5.0, 4.0])?;
            // Above the line but inside the chart.
            let above = label - brush.px(2.0);
            let foot = above.max(rows.start + brush.px(18.0));
            brush.label(name, (columns.start + brush.px(6.0), foot), brush.palette.limit)?;
        }
        Ok(())
    }

    pub(super) fn pointer(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let Some(value) = self.pointed else { return Ok(()) };
        let rows = &plane.rows;
        let x = self.at(plane, value, self.y.range.start).0;
        let style = brush.stroke(brush.palette.ink.mix(0.6), 1.0);
        brush.line([(x, rows.start), (x, rows.end)], style)
    }

    pub(super) fn curve(&self, brush: &Brush, plane: &Plane, series: &Series) -> Drawn {
        let color = brush.palette.series(series.style);
        for run in series.points.split(|point| point.1.is_none()) {
            let whole: Vec<(f64, f64)> = run.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect();
            let inside = self.cut(&whole);
            let points: Vec<Point> = inside.iter().map(|(x, y)| self.at(plane, *x, *y)).collect();
            match &points[..] {
                [] => {}
                [alone] => brush.dot_of(*alone, color)?,
                _ => brush.dashed(points, brush.stroke(color.into(), 2.0), Self::dash(series.style))?,
            }
        }
        let here = self.pointed.and_then(|at| series.points.iter().find(|p| p.0 == at));
        if let Some((x, Some(y))) = here.filter(|p| p.1.is_some_and(|y| y <= self.y.range.end)) {
            brush.dot_of(self.at(plane, *x, *y), color)?;
        }
        for point in &series.measured {
            self.measured(brush, plane, point, color)?;
        }
        Ok(())
    }

    /// Clips a curve where it leaves the chart at the top.
    fn cut(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let top = self.y.range.end;
        let Some(out) = points.iter().position(|p| p.1 > top) else {
            return points.to_vec();
        };
        let mut inside = points[..out].to_vec();
        if let (Some(last), Some(next)) = (points[..out].last(), points.get(out)) {
            let place = |y| self.y.place(y);
            let share = (place(top) - place(last.1)) / (place(next.1) - place(last.1));
            let (from, to) = (self.x.place(last.0), self.x.place(next.0));
            inside.push((self.x.value(from + share * (to - from)), top));
        }
        inside
    }

    fn measured(&self, brush: &Brush, plane: &Plane, point: &Measured, color: RGBColor) -> Drawn {
        if !self.y.range.contains(&point.y) || point.x < self.x.range.start || point.x > self.x.range.end {
            return Ok(());
        }
        if let Some([low, high]) = point.range {
            let ends = [low, high].map(|y| self.at(plane, point.x, y.min(self.y.range.end)));
            brush.line(ends, brush.stroke(color.into(), 1.25))?;
        }
        brush.ring(self.at(plane, point.x, point.y), color)
    }

    /// Draws each curve's name at its end, if there is room.
    pub(super) fn names(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let Plane { columns, rows, .. } = plane;
        let width = f64::from(brush.root.dim_in_pixel().0) / brush.ratio;
        if self.room_for_names(width) < 15.0 {
            return Ok(());
        }
        let mut ends: Vec<(i32, &Series)> = self
            .series
            .iter()
            .filter_map(|series| {
                let last = series.points.iter().rev().find_map(|(x, y)| Some((*x, (*y)?)))?;
                Some((self.at(plane, last.0, last.1.min(self.y.range.end)).1, series))
            })
            .collect();
        sort_by_key(&mut ends, |(y, _)| *y);
        let places = spread(ends.iter().map(|end| end.0), brush.px(LINE), rows.end);
        for ((_, series), y) in ends.into_iter().zip(places) {
            let at = (columns.end + brush.px(6.0), y);
            let color = brush.palette.series(series.style);
            brush.text(&series.name, at, color, (HPos::Left, VPos::Center))?;
        }
        Ok(())
    }

    pub(super) fn marks(&self, brush: &Brush, plane: &Plane) -> Drawn {
        let columns = &plane.columns;
        for mark in self.marks.iter().filter(|mark| mark.y <= self.y.range.end) {
            let (x, y) = self.at(plane, mark.x, mark.y);
            brush.dot((x, y))?;
            let width = brush.width(&mark.words);
            let right = x + brush.px(8.0);
            let begin = if right + width > columns.end {
                x - brush.px(6.0) - width
            } else {
                right
            };
            brush.label(&mark.words, (begin, y + brush.px(16.0)), brush.palette.ink)?;
        }
        Ok(())
    }
}

/// Moves label rows, given from top to bottom, at least `gap` apart and keeps them above `end`.
fn spread(rows: impl Iterator<Item = i32>, gap: i32, end: i32) -> Vec<i32> {
    let mut out: Vec<i32> = Vec::new();
    for row in rows {
        out.push(out.last().map_or(row, |last| row.max(last + gap)));
    }
    let mut below = end + gap;
    for row in out.iter_mut().rev() {
        *row = (*row).min(below - gap);
        below = *row;
    }
    out
}
