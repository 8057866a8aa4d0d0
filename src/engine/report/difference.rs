//! Difference between the memory of two runs: part by part, and tensor by tensor at their peaks.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};

use serde::{Deserialize, Serialize};

use super::{OutsideTerm, Part, Phase, Report};
use crate::dtype::DType;
use crate::order::{sort_by, sort_by_key};
use crate::tape::dims::Dims;
use crate::tape::{Component, Kind, Why};
use crate::units::Bytes;

/// Tensors of one run that have the same name in all blocks of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alike {
    /// Number of storages.
    pub count: u64,
    /// Their bytes, as the allocator rounds them.
    pub bytes: Bytes,
    /// Shape and type, if all have the same.
    pub form: Option<(Dims, DType)>,
    /// Reason that the first of them is live.
    pub why: Why,
}

/// Tensors of one name in two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorDifference {
    /// Purpose of the memory.
    pub kind: Kind,
    /// Part of the model.
    pub component: Component,
    /// Module path, with `*` for the number of a block: `model.layers.*.self_attn`.
    pub layer: String,
    /// Name of the tensor, or of the operation that made it.
    pub name: Cow<'static, str>,
    /// What each run holds at its own peak; `None` for nothing.
    pub held: [Option<Alike>; 2],
}

impl TensorDifference {
    /// Bytes in each run.
    pub fn bytes(&self) -> [Bytes; 2] {
        self.held.map(|held| held.map_or(Bytes::ZERO, |alike| alike.bytes))
    }

    /// Bytes that the second run holds more than the first.
    pub fn more(&self) -> i64 {
        more(self.bytes())
    }
}

/// Difference between two runs, the first called A and the second B. Each holds what it holds at its own peak, so that the
/// tensors may be of different phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Bytes that each run needs: of its card, or of the allocator where no card is known.
    pub needed: [Bytes; 2],
    /// Bytes in tensors at each run's peak.
    pub allocated: [Bytes; 2],
    /// The phase that holds each peak.
    pub phases: [Phase; 2],
    /// Parts of [`Self::needed`], of which they are the sum.
    pub parts: Vec<(Part, [Bytes; 2])>,
    /// Tensors whose bytes differ, the largest difference first. Within a kind, their differences add up to that of its part.
    pub tensors: Vec<TensorDifference>,
}

impl Difference {
    /// Compares two runs, each with what it holds outside the allocator.
    pub fn between(runs: [(&Report, &[OutsideTerm]); 2]) -> Self {
        let reports = runs.map(|(report, _)| report);
        let parts = parts(runs.map(|(report, outside)| report.footprint(outside)));
        Self {
            needed: [0, 1].map(|run| parts.iter().map(|(_, bytes)| bytes[run]).sum()),
            allocated: reports.map(|report| report.by_kind().iter().map(|(_, bytes)| *bytes).sum()),
            phases: reports.map(|report| report.peak_phase),
            tensors: tensors(reports.map(groups)),
            parts,
        }
    }

    /// Bytes that B needs more than A.
    pub fn more(&self) -> i64 {
        more(self.needed)
    }

    /// Tensors of a kind whose bytes differ, the largest difference first.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &TensorDifference> {
        self.tensors.iter().filter(move |tensor| tensor.kind == kind)
    }
}

/// Bytes of the second that the first has not.
pub fn more([a, b]: [Bytes; 2]) -> i64 {
    b.difference_to(a)
}

/// Joins the parts of two runs, in the order in which a bar stacks them.
fn parts(both: [Vec<(Part, Bytes)>; 2]) -> Vec<(Part, [Bytes; 2])> {
    let mut out: Vec<(Part, [Bytes; 2])> = Vec::new();
    for (run, parts) in both.into_iter().enumerate() {
        for (part, bytes) in parts {
            let known = out.iter().position(|(known, _)| *known == part);
            let at = known.unwrap_or_else(|| {
                out.push((part, [Bytes::ZERO; 2]));
                out.len() - 1
            });
            out[at].1[run] = bytes;
        }
    }
    sort_by_key(&mut out, |(part, _)| order(*part));
    out
}

const fn order(part: Part) -> usize {
    match part {
        Part::Live(kind) => kind as usize,
        Part::Reserve => Kind::COUNT,
        Part::Outside(_) => Kind::COUNT + 1,
    }
}

/// Tensors of one name in one run.
struct Group {
    kind: Kind,
    component: Component,
    layer: String,
    name: &'static str,
    alike: Alike,
}

impl Group {
    /// Order of groups, and equality of those that two runs share.
    fn compare(&self, other: &Self) -> Ordering {
        let key = |of: &Self| (of.kind as usize, of.component as usize);
        (key(self).cmp(&key(other)))
            .then_with(|| self.layer.cmp(&other.layer))
            .then_with(|| self.name.cmp(other.name))
    }
}

/// Groups what is live at a run's peak by kind, component, module and name, sorted.
fn groups(report: &Report) -> Vec<Group> {
    let timeline = &report.timeline;
    let live = timeline.live(timeline.peak_instant());
    let mut layers: Vec<Option<String>> = vec![None; live.log().scopes.len()];
    let mut all: Vec<Group> = live
        .by_description()
        .map(|held| {
            let of = held.allocation;
            let layer = layers[of.scope as usize].get_or_insert_with(|| any_block(&live.log().path(of.scope)));
            Group {
                kind: held.kind(),
                component: held.component,
                layer: layer.clone(),
                name: of.name,
                alike: Alike {
                    count: held.count,
                    bytes: held.bytes,
                    form: Some((of.shape, of.dtype)),
                    why: of.why_live(),
                },
            }
        })
        .collect();
    sort_by(&mut all, Group::compare);
    all.dedup_by(|next, kept| {
        let is_same = next.compare(kept) == Ordering::Equal;
        if is_same {
            kept.alike.count += next.alike.count;
            kept.alike.bytes += next.alike.bytes;
            kept.alike.form = kept.alike.form.filter(|form| next.alike.form == Some(*form));
        }
        is_same
    });
    all
}

/// Replaces numbers within a path by `*`, so that all blocks of a model have one path.
fn any_block(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for name in path.split('.') {
        if !out.is_empty() {
            out.push('.');
        }
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        out.push_str(if is_number { "*" } else { name });
    }
    out
}

/// Joins the groups of two runs, and keeps those whose bytes differ.
fn tensors([a, b]: [Vec<Group>; 2]) -> Vec<TensorDifference> {
    let mut out = Vec::new();
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        let order = match (a.peek(), b.peek()) {
            (Some(of_a), Some(of_b)) => of_a.compare(of_b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let held = [
            a.next_if(|_| order != Ordering::Greater),
            b.next_if(|_| order != Ordering::Less),
        ];
        let alike = [0, 1].map(|run| held[run].as_ref().map(|group| group.alike));
        let Some(group) = held.into_iter().flatten().next() else {
            break;
        };
        out.push(TensorDifference {
            kind: group.kind,
            component: group.component,
            layer: group.layer,
            name: group.name.into(),
            held: alike,
        });
    }
    out.retain(|tensor| tensor.more() != 0);
    sort_by_key(&mut out, |tensor| Reverse(tensor.more().unsigned_abs()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_model_have_one_path() {
        assert_eq!(any_block("model.layers.27.self_attn"), "model.layers.*.self_attn");
        assert_eq!(any_block("layer4.0.conv1"), "layer4.*.conv1");
        assert_eq!(any_block(""), "");
    }
}
