//! Draws horizontal bars with block characters.

use vramscope_engine::units::Bytes;

/// Left-aligned partial cells, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Returns a bar for `part`, where `whole` fills `cells` cells, and the blanks after it.
///
/// A positive amount shows at least one eighth of a cell; no bar is longer than `cells`.
pub fn bar(part: Bytes, whole: Bytes, cells: usize) -> (String, String) {
    let eighths = eighths(part.get(), whole.get(), cells);
    let filled = eighths.div_ceil(8);
    let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    (bar, " ".repeat(cells - filled))
}

fn eighths(part: u64, whole: u64, cells: usize) -> usize {
    if part == 0 || whole == 0 {
        return 0;
    }
    let full = cells * 8;
    let exact = u128::from(part.min(whole)) * full as u128 / u128::from(whole);
    (exact as usize).clamp(1, full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(part: u64, whole: u64) -> String {
        let (bar, rest) = bar(Bytes::new(part), Bytes::new(whole), 4);
        format!("{bar}{}", rest.replace(' ', "."))
    }

    #[test]
    fn bars_fill_their_cells() {
        assert_eq!(drawn(0, 10), "....");
        assert_eq!(drawn(1, 1_000_000), "▏...");
        assert_eq!(drawn(5, 10), "██..");
        assert_eq!(drawn(9, 16), "██▎.");
        assert_eq!(drawn(10, 10), "████");
        assert_eq!(drawn(u64::MAX, 10), "████");
        assert_eq!(drawn(3, 0), "....");
    }
}
