//! Colours of charts, read from the style sheet.

use std::cell::RefCell;

use leptos::prelude::{document, window};
use plotters::style::RGBColor;
use vramscope_engine::report::Part;
use vramscope_engine::tape::Kind;

/// CSS class that sets the colour of a kind; the colours are in `style/`.
pub const fn kind_class(kind: Kind) -> &'static str {
    match kind {
        Kind::Weight => "kind-weight",
        Kind::Gradient => "kind-gradient",
        Kind::OptimizerState => "kind-optimizer-state",
        Kind::Activation => "kind-activation",
        Kind::Temporary => "kind-temporary",
        Kind::Workspace => "kind-workspace",
        Kind::Input => "kind-input",
    }
}

/// CSS class that sets the colour of a part of the footprint.
pub const fn part_class(part: Part) -> &'static str {
    match part {
        Part::Live(kind) => kind_class(kind),
        Part::Reserve => "part-reserve",
        Part::Outside(_) => "part-outside",
    }
}

/// Current colours of the style sheet, for drawing on a canvas.
#[derive(Debug, Clone)]
pub struct Palette {
    /// By kind, in the order of [`Kind::ALL`].
    pub kinds: [RGBColor; Kind::COUNT],
    /// Background of charts.
    pub surface: RGBColor,
    /// Text and the mark of the peak.
    pub ink: RGBColor,
    /// Axis labels.
    pub muted: RGBColor,
    /// Limit lines.
    pub limit: RGBColor,
    /// Grid lines.
    pub line: RGBColor,
    series: [RGBColor; SERIES],
}

/// Number of distinct curve colours.
const SERIES: usize = 7;

thread_local! {
    static READ: RefCell<Option<Palette>> = const { RefCell::new(None) };
}

impl Palette {
    /// Returns the document's colours, cached until the theme changes, because reading them forces the browser to
    /// compute styles for the whole page.
    pub fn read() -> Self {
        READ.with_borrow_mut(|read| read.get_or_insert_with(Self::of_root).clone())
    }

    /// Clears the cache after a change of theme.
    pub fn forget() {
        READ.set(None);
    }

    fn of_root() -> Self {
        Self {
            kinds: Kind::ALL.map(|kind| colour(&format!("--{}", kind_class(kind)))),
            surface: colour("--surface"),
            ink: colour("--ink"),
            muted: colour("--muted"),
            limit: colour("--oom"),
            line: colour("--line"),
            series: std::array::from_fn(|i| colour(&format!("--series-{}", i + 1))),
        }
    }

    /// Colour of a curve.
    pub fn series(&self, style: usize) -> RGBColor {
        self.series[style % SERIES]
    }
}

/// Reads a registered colour property, which browsers resolve to `rgb(…)`; grey if that fails.
fn colour(property: &str) -> RGBColor {
    let text = document()
        .document_element()
        .and_then(|root| window().get_computed_style(&root).ok().flatten())
        .and_then(|style| style.get_property_value(property).ok())
        .unwrap_or_default();
    parse_rgb(&text).unwrap_or(RGBColor(128, 128, 128))
}

fn parse_rgb(text: &str) -> Option<RGBColor> {
    let inside = text.split_once('(')?.1.split_once(')')?.0;
    let mut parts = inside.split([',', ' ', '/']).filter(|p| !p.is_empty());
    let mut next = || parts.next()?.split('.').next()?.parse().ok();
    Some(RGBColor(next()?, next()?, next()?))
}
