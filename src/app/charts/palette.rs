use std::cell::RefCell;

use leptos::prelude::{document, window};
use plotters::style::RGBColor;
use vramscope_engine::report::Part;
use vramscope_engine::tape::Kind;

/// The class that gives an element the colour of a kind; `style/` has the colours.
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

/// The class that gives an element the colour of a part of the footprint.
pub const fn part_class(part: Part) -> &'static str {
    match part {
        Part::Live(kind) => kind_class(kind),
        Part::Reserve => "part-reserve",
        Part::Outside(_) => "part-outside",
    }
}

/// The style sheet's colours in force now, for what draws on a canvas.
#[derive(Debug, Clone)]
pub struct Palette {
    /// By kind, in the order of [`Kind::ALL`].
    pub kinds: [RGBColor; Kind::COUNT],
    /// What charts are drawn on.
    pub surface: RGBColor,
    /// Text and the peak's mark.
    pub ink: RGBColor,
    /// Text of axes.
    pub muted: RGBColor,
    /// Where the card ends.
    pub limit: RGBColor,
    /// Grid lines.
    pub line: RGBColor,
    series: [RGBColor; SERIES],
}

/// How many curves have colours of their own.
const SERIES: usize = 7;

thread_local! {
    static READ: RefCell<Option<Palette>> = const { RefCell::new(None) };
}

impl Palette {
    /// The colours of the document's root, as they were when the theme last changed: reading them has
    /// the browser style the whole page first.
    pub fn read() -> Self {
        READ.with_borrow_mut(|read| read.get_or_insert_with(Self::of_root).clone())
    }

    /// The theme changed: the colours are to be read again.
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

    /// The colour of a curve.
    pub fn series(&self, style: usize) -> RGBColor {
        self.series[style % SERIES]
    }
}

/// A registered colour property: browsers resolve it to `rgb(…)`. Grey where one does not.
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
