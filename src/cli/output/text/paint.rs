//! Text styles by meaning. All colours are among the terminal's sixteen, so that they follow its theme, and no
//! information is conveyed by colour alone.

use anstyle::{AnsiColor, Style};
use vramscope_diagnose::Confidence;
use vramscope_engine::report::Severity;
use vramscope_engine::tape::Kind;
use vramscope_engine::verdict::Verdict;

/// Headings and the most important information.
pub const STRONG: Style = Style::new().bold();
/// Secondary information.
pub const QUIET: Style = Style::new().dimmed();

/// Colour of a kind of tensor.
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

/// Colour of a verdict.
pub fn verdict(verdict: Verdict) -> Style {
    color(match verdict {
        Verdict::Fits => AnsiColor::Green,
        Verdict::Tight => AnsiColor::Yellow,
        Verdict::Oom => AnsiColor::Red,
    })
    .bold()
}

/// Colour of a warning's mark.
pub fn severity(severity: Severity) -> Style {
    match severity {
        Severity::Note => QUIET,
        Severity::Warning => color(AnsiColor::Yellow).bold(),
    }
}

/// Colour of a finding's confidence.
pub fn confidence(confidence: Confidence) -> Style {
    match confidence {
        Confidence::Cause => color(AnsiColor::Red).bold(),
        Confidence::Likely => color(AnsiColor::Yellow).bold(),
        Confidence::Possible => color(AnsiColor::Cyan).bold(),
        Confidence::Note => STRONG,
        Confidence::RuledOut => color(AnsiColor::Green),
    }
}

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(color)))
}
