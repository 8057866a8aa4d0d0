//! Plots attention times against length in characters.

use std::collections::BTreeMap;

use vramscope_benchmark::{Class, Kernel, Pass, Record};

use super::show::time;

const HEIGHT: usize = 14;
/// Columns between two lengths.
const STEP: usize = 8;
const MARKS: [char; 6] = ['o', 'x', '+', '*', '#', '@'];

/// Plots the forward times of each algorithm on logarithmic axes, for the shape measured at most lengths; `None` if
/// there are fewer than three lengths.
pub fn attention(record: &Record) -> Option<String> {
    let mut shapes: BTreeMap<[u64; 3], Vec<(&Kernel, u64)>> = BTreeMap::new();
    for result in &record.results {
        let kernel = &result.kernel;
        let plain =
            kernel.class == Class::Attention && kernel.pass == Some(Pass::Forward) && kernel.causal != Some(true);
        let two_bytes = kernel.precision.is_some_and(|p| p.width() == 2);
        let summary = result.measured().and_then(|m| m.summary.as_ref());
        if let (true, Some(summary)) = (plain && two_bytes, summary) {
            let shape = [kernel.shape.batch, kernel.shape.heads, kernel.shape.head_dim].map(|n| n.unwrap_or(1));
            shapes.entry(shape).or_default().push((kernel, summary.median_ns));
        }
    }
    let (shape, points) = shapes
        .into_iter()
        .max_by_key(|(shape, points)| (points.len(), *shape))?;
    let mut lengths: Vec<u64> = points.iter().filter_map(|(kernel, _)| kernel.shape.length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    (lengths.len() >= 3).then(|| draw(shape, &lengths, &points))
}

fn draw([batch, heads, width]: [u64; 3], lengths: &[u64], points: &[(&Kernel, u64)]) -> String {
    let ends = |f: fn(u64, u64) -> u64| points.iter().map(|(_, ns)| (*ns).max(1)).reduce(f).unwrap_or(1);
    let (low, high) = (ends(u64::min), ends(u64::max).max(2));
    let span = (high as f64 / low as f64).ln().max(1e-9);
    let mut grid = vec![vec![' '; lengths.len() * STEP]; HEIGHT];
    let mut marks: BTreeMap<&str, char> = BTreeMap::new();
    for (kernel, ns) in points {
        let Some(name) = kernel.algorithm.map(|a| a.name()) else {
            continue;
        };
        let next = MARKS[marks.len() % MARKS.len()];
        let mark = *marks.entry(name).or_insert(next);
        let place = lengths
            .iter()
            .position(|l| Some(*l) == kernel.shape.length)
            .unwrap_or(0);
        let up = (*ns as f64 / low as f64).ln() / span * (HEIGHT - 1) as f64;
        let row = HEIGHT - 1 - (up.round() as usize).min(HEIGHT - 1);
        // Algorithms in the same row are drawn side by side.
        let cells = &mut grid[row][place * STEP..(place + 1) * STEP];
        if let Some(free) = cells.iter_mut().find(|c| **c == ' ') {
            *free = mark;
        }
    }
    let mut text =
        format!("\nAttention forward, {batch} x {heads} heads of {width}: time by length, both logarithmic\n");
    for (i, row) in grid.iter().enumerate() {
        let axis = match i {
            0 => time(high),
            _ if i == HEIGHT - 1 => time(low),
            _ => String::new(),
        };
        let cells: String = row.iter().collect();
        text += format!("{axis:>11} |{cells}").trim_end();
        text.push('\n');
    }
    text += &format!("{:>11} +{}\n{:>13}", "", "-".repeat(lengths.len() * STEP), "");
    text += lengths
        .iter()
        .map(|l| format!("{l:<STEP$}"))
        .collect::<String>()
        .trim_end();
    let legend: Vec<String> = marks.iter().map(|(name, mark)| format!("{mark} {name}")).collect();
    text += &format!("\n{:>13}{}\n", "", legend.join("   "));
    text
}
