//! Breakdown of the peak as a tree.

use leptos::prelude::*;
use vramscope_engine::report::BreakdownNode;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;

use super::breakdown_row::BreakdownRow;
use crate::i18n::{t, use_i18n};
use crate::simulation::Simulation;

/// A visible row of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Names from the root, which identify the row.
    pub path: Vec<String>,
    /// Bytes of the whole subtree.
    pub bytes: Bytes,
    /// Bytes of the whole tree.
    pub whole: Bytes,
    /// Kinds in the subtree with their bytes, drawn as segments of the bar.
    pub pieces: Vec<(Kind, Bytes)>,
    /// True if the row has children.
    pub opens: bool,
    /// True if the row is open.
    pub is_open: bool,
}

/// Paths of rows that were opened or closed by hand.
pub type Toggled = RwSignal<Vec<Vec<String>>>;

/// Memory live at the peak: component → kind → layer → tensor.
#[component]
pub fn Breakdown() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let toggled: Toggled = RwSignal::new(Vec::new());
    let lines = Memo::new(move |_| {
        let detailed = simulation.detailed.get();
        detailed
            .map(|detailed| toggled.with(|t| lines(&detailed.details.breakdown, t)))
            .unwrap_or_default()
    });
    view! {
        <p class="muted small">{t!(i18n, breakdown.explain)}</p>
        <table class="breakdown">
            <colgroup>
                <col class="col-name" />
                <col />
                <col class="col-bytes" />
                <col class="col-share" />
            </colgroup>
            <thead>
                <tr class="offscreen">
                    <th scope="col">{t!(i18n, breakdown.name)}</th>
                    <th scope="col">{t!(i18n, breakdown.bar)}</th>
                    <th scope="col">{t!(i18n, breakdown.bytes)}</th>
                    <th scope="col">{t!(i18n, breakdown.share)}</th>
                </tr>
            </thead>
            <tbody>
                <ForEnumerate
                    each=move || lines.get()
                    key=|line| line.path.clone()
                    children=move |place, line| {
                        view! { <BreakdownRow line=current(lines, place, line) toggled /> }
                    }
                />
            </tbody>
        </table>
    }
}

/// Follows the row at a position; a row that is being removed keeps its last value.
fn current(lines: Memo<Vec<Line>>, place: ReadSignal<usize>, first: Line) -> Memo<Line> {
    let path = first.path.clone();
    Memo::new(move |last: Option<&Line>| {
        let now = lines.with(|lines| lines.get(place.get()).filter(|line| line.path == path).cloned());
        now.or_else(|| last.cloned()).unwrap_or_else(|| first.clone())
    })
}

fn lines(root: &BreakdownNode, toggled: &[Vec<String>]) -> Vec<Line> {
    let mut out = Vec::new();
    let mut path = Vec::new();
    descend(root, root.bytes, None, toggled, &mut path, &mut out);
    out
}

fn descend(
    node: &BreakdownNode,
    whole: Bytes,
    kind: Option<Kind>,
    toggled: &[Vec<String>],
    path: &mut Vec<String>,
    out: &mut Vec<Line>,
) {
    for child in &node.children {
        path.push(child.name.clone());
        let kind = kind.or_else(|| {
            Kind::ALL
                .into_iter()
                .find(|k| path.len() == 2 && k.label() == child.name)
        });
        // Components are open by default.
        let is_open = toggled.contains(path) != (path.len() == 1);
        out.push(Line {
            path: path.clone(),
            bytes: child.bytes,
            whole,
            pieces: pieces(child, kind),
            opens: !child.children.is_empty(),
            is_open,
        });
        if is_open {
            descend(child, whole, kind, toggled, path, out);
        }
        path.pop();
    }
}

/// Returns the bar's segments: one per kind for a component, a single one below that.
fn pieces(node: &BreakdownNode, kind: Option<Kind>) -> Vec<(Kind, Bytes)> {
    match kind {
        Some(kind) => vec![(kind, node.bytes)],
        None => Kind::ALL
            .into_iter()
            .filter_map(|k| Some((k, node.children.iter().find(|c| c.name == k.label())?.bytes)))
            .collect(),
    }
}
