//! Formats warnings and notes.

use vramscope_engine::report::{Severity, Warning};

use super::paint::{self, STRONG};
use super::wrap::wrap;

/// Formats warnings before notes, each wrapped next to its mark.
pub fn render(warnings: &[Warning], width: usize) -> String {
    if warnings.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<&Warning> = warnings.iter().collect();
    sorted.sort_by_key(|warning| warning.severity != Severity::Warning);
    let items: String = sorted.into_iter().map(|warning| item(warning, width)).collect();
    format!("{STRONG}Worth knowing{STRONG:#}\n{items}")
}

fn item(warning: &Warning, width: usize) -> String {
    let style = paint::severity(warning.severity);
    let mark = match warning.severity {
        Severity::Warning => "!",
        Severity::Note => "·",
    };
    let lines = wrap(&warning.message, width.saturating_sub(4));
    format!("  {style}{mark}{style:#} {}\n", lines.join("\n    "))
}
