//! Shows the live memory at the peak by component and kind of tensor.

use anstyle::Style;
use vramscope_engine::Report;
use vramscope_engine::format::share;
use vramscope_engine::report::BreakdownNode;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;

use super::paint::{self, STRONG};
use super::row::Row;

/// Formats bars by component and kind, the largest first; parts below 0.5% are combined in one row.
pub fn render(report: &Report, width: usize) -> String {
    let total = &report.breakdown;
    let longest = total.children.iter().flat_map(|c| &c.children).map(|k| k.bytes).max();
    let chart = Chart {
        total: total.bytes,
        longest: longest.unwrap_or(Bytes::ZERO),
        width,
    };
    let mut out = format!("{STRONG}Live at the peak, in {}{STRONG:#}\n", report.peak_phase.label());
    let (shown, small): (Vec<_>, Vec<_>) = total.children.iter().partition(|c| chart.shows(c));
    for component in shown {
        out += &chart.component(component);
    }
    out + &chart.gathered("  ", &small)
}

struct Chart {
    total: Bytes,
    longest: Bytes,
    width: usize,
}

impl Chart {
    fn shows(&self, node: &BreakdownNode) -> bool {
        u128::from(node.bytes.get()) * 200 >= u128::from(self.total.get())
    }

    fn component(&self, component: &BreakdownNode) -> String {
        let mut out = self.row(&format!("  {}", component.name), component.bytes, None, STRONG);
        let (shown, small): (Vec<_>, Vec<_>) = component.children.iter().partition(|k| self.shows(k));
        for kind in shown {
            out += &self.row(
                &format!("    {}", kind.name),
                kind.bytes,
                Some(bar_style(&kind.name)),
                Style::new(),
            );
        }
        out + &self.gathered("    ", &small)
    }

    fn gathered(&self, indent: &str, small: &[&BreakdownNode]) -> String {
        let label = match small {
            [] => return String::new(),
            [one] => format!("{indent}{}", one.name),
            many => format!("{indent}{} smaller", many.len()),
        };
        let bytes = small.iter().map(|node| node.bytes).sum();
        self.row(&label, bytes, None, paint::QUIET)
    }

    fn row(&self, label: &str, bytes: Bytes, bar_style: Option<Style>, text_style: Style) -> String {
        let row = Row {
            label,
            bytes,
            of: bar_style.map(|_| self.longest),
            note: &format!("{:>4}", share(bytes, self.total)),
            bar_style: bar_style.unwrap_or_default(),
            text_style,
        };
        row.render(self.width)
    }
}

fn bar_style(kind_label: &str) -> Style {
    let kind = Kind::ALL.into_iter().find(|kind| kind.label() == kind_label);
    kind.map(paint::kind).unwrap_or_default()
}
