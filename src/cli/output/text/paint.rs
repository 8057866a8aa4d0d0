//! Colours, each with one meaning. All are of the terminal's own sixteen, so that they follow its
//! theme; nothing is told by colour alone.

use anstyle::{AnsiColor, Style};
use vramscope_diagnose::Standing;
use vramscope_engine::report::Severity;
use vramscope_engine::tape::Kind;
use vramscope_engine::verdict::Verdict;

/// Headings and what matters most.
pub const STRONG: Style = Style::new().bold();
/// What is there when looked for.
pub const QUIET: Style = Style::new().dimmed();

/// The colour of what tensors are for.
pub fn kind(kind: Kind) -> Style {
    color(match kind {
        Kind::Weight => AnsiColor::Blue,
        Kind::Gradient => AnsiColor::Yellow,
        Kind::OptimizerState => AnsiColor::Magenta,
        Kind::Activation => AnsiColor::Green,
        Kind::Temporary => AnsiColor::Cyan,
        Kind::Workspace => AnsiColor::BrightBlack,
        Kind::Input => AnsiColor::White,
    })
}

/// The colour of a verdict.
pub fn verdict(verdict: Verdict) -> Style {
    color(match verdict {
        Verdict::Fits => AnsiColor::Green,
        Verdict::Tight => AnsiColor::Yellow,
        Verdict::Oom => AnsiColor::Red,
    })
    .bold()
}

/// The colour of a warning's mark.
pub fn severity(severity: Severity) -> Style {
    match severity {
        Severity::Note => QUIET,
        Severity::Warning => color(AnsiColor::Yellow).bold(),
    }
}

/// The colour of how sure a finding is.
pub fn standing(standing: Standing) -> Style {
    match standing {
        Standing::Cause => color(AnsiColor::Red).bold(),
        Standing::Likely => color(AnsiColor::Yellow).bold(),
        Standing::Possible => color(AnsiColor::Cyan).bold(),
        Standing::Note => STRONG,
        Standing::RuledOut => color(AnsiColor::Green),
    }
}

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(color)))
}
