//! Plots memory over time with block characters.

use vramscope_engine::format::gib;
use vramscope_engine::units::Bytes;

use super::paint::QUIET;

/// Height of a curve in lines.
const HEIGHT: u64 = 8;
/// Bottom-aligned partial cells, in eighths.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Plots a curve in `width` columns over a line with its maximum; `most` fills the height.
pub fn curve(totals: &[Bytes], most: Bytes, width: usize, indent: &str) -> String {
    let columns = squeeze(totals, width);
    let mut out = String::new();
    for line in (0..HEIGHT).rev() {
        let cells: String = columns.iter().map(|bytes| cell(*bytes, most, line)).collect();
        let label = if line + 1 == HEIGHT {
            format!(" {QUIET}{}{QUIET:#}", gib(most))
        } else {
            String::new()
        };
        out += &format!("{indent}{}{label}\n", cells.trim_end());
    }
    out
}

/// Maximum of each span.
fn squeeze(totals: &[Bytes], width: usize) -> Vec<Bytes> {
    let span = totals.len().div_ceil(width.max(1)).max(1);
    let spans = totals.chunks(span);
    spans.filter_map(|span| span.iter().max().copied()).collect()
}

fn cell(bytes: Bytes, most: Bytes, line: u64) -> &'static str {
    if most == Bytes::ZERO {
        return EIGHTHS[0];
    }
    let eighths = u128::from(bytes.get()) * u128::from(HEIGHT) * 8 / u128::from(most.get());
    let here = (eighths as u64).saturating_sub(line * 8).min(8);
    EIGHTHS[here as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_keeps_its_peak() {
        let totals: Vec<Bytes> = [1, 2, 64, 2, 1, 0].map(Bytes::mib).to_vec();
        let drawn = curve(&totals, Bytes::mib(64), 3, "");
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines.len(), HEIGHT as usize);
        assert!(lines[0].starts_with(" █ "), "{drawn}");
        assert_eq!(lines[7], "▂█▁");
    }
}
