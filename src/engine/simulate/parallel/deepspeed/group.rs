//! Parameters in flat buffers, one for each group of the client's optimizer, cut into a part for each GPU
//! (`DeepSpeedZeroOptimizer.__init__`).

use std::ops::Range;

use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::{Kind, Tape, Tensor, Why};

/// The trained parameters, and where they lie in flat buffers.
pub(super) struct Groups {
    /// Parameters in the client's order, group by group.
    pub params: Vec<Tensor>,
    /// First element of each in its group's buffer.
    offsets: Vec<u64>,
    /// Group of each.
    group_of: Vec<usize>,
    /// The groups.
    pub list: Vec<Group>,
    /// Number of GPUs.
    pub world: u64,
}

/// One group's flat buffer.
pub(super) struct Group {
    /// Indices of its parameters in the order of the buffer.
    pub order: Vec<usize>,
    /// Elements of each GPU's part.
    pub part: u64,
    /// Zeros that align the parts, in elements.
    pub padding: u64,
}

/// Elements to which each part is aligned (`nccl_start_alignment_factor`).
const ALIGNMENT: u64 = 2;

impl Groups {
    /// Places the parameters of each group one after the other, or those of each GPU together (`_round_robin_reorder`).
    pub fn new<'a>(groups: impl Iterator<Item = &'a [Tensor]>, world: u64, round_robin: bool) -> Self {
        let mut out = Self {
            params: Vec::new(),
            offsets: Vec::new(),
            group_of: Vec::new(),
            list: Vec::new(),
            world,
        };
        for params in groups {
            out.add(params, world, round_robin);
        }
        out
    }

    fn add(&mut self, params: &[Tensor], world: u64, round_robin: bool) {
        let first = self.params.len();
        self.params.extend_from_slice(params);
        self.offsets.resize(self.params.len(), 0);
        self.group_of.resize(self.params.len(), self.list.len());
        let mut order: Vec<usize> = (first..self.params.len()).collect();
        if round_robin {
            order.sort_by_key(|at| (at - first) as u64 % world);
        }
        let mut end = 0;
        for &at in &order {
            self.offsets[at] = end;
            end += self.params[at].numel();
        }
        let whole = end.next_multiple_of(ALIGNMENT * world);
        self.list.push(Group {
            order,
            part: whole / world,
            padding: whole - end,
        });
    }

    /// Copies the parameters of a group into its flat buffer, of which they are parts from then on.
    pub fn flatten(&self, t: &Tape, group: &Group, world: u64) -> Tensor {
        let params: Vec<&Tensor> = group.order.iter().map(|&at| &self.params[at]).collect();
        let dtype = params[0].dtype();
        let pad = (group.padding > 0).then(|| t.empty([group.padding], dtype, "padding"));
        let flat = match (&params[..], &pad) {
            ([only], None) => t.view(&only.detach(), [only.numel()]),
            _ => t.as_kind(Kind::Weight, || t.empty([group.part * world], dtype, "flat parameters")),
        };
        flat.storage().classify(Kind::Weight, Why::Parameter);
        if params.len() > 1 || pad.is_some() {
            params.iter().for_each(|param| t.give_up(param));
        }
        flat
    }

    /// Type of the parameters, to which the engine has cast them all, and so of their gradients.
    pub fn dtype(&self) -> DType {
        self.params.first().map_or(DType::Bf16, Tensor::dtype)
    }

    /// Index of a parameter.
    pub fn index(&self, param: &Tensor) -> Option<usize> {
        self.params.iter().position(|known| known.is(param))
    }

    fn group(&self, at: usize) -> &Group {
        &self.list[self.group_of[at]]
    }

    /// Parameters of a group of which this GPU, the first, keeps elements.
    pub fn own_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = usize> + 'a {
        group.order.iter().copied().filter(|at| self.is_own(*at))
    }

    /// Parameters of which this GPU keeps elements.
    pub fn own(&self) -> impl Iterator<Item = usize> + '_ {
        self.list.iter().flat_map(|group| self.own_of(group))
    }

    /// Returns true if this GPU keeps elements of a parameter.
    pub fn is_own(&self, at: usize) -> bool {
        self.offsets[at] < self.group(at).part
    }

    /// Elements of a parameter that this GPU keeps.
    pub fn own_elements(&self, at: usize) -> u64 {
        (self.group(at).part - self.offsets[at]).min(self.params[at].numel())
    }

    /// GPUs that keep elements of a parameter, each with the number of them.
    pub fn slices(&self, at: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let part = self.group(at).part;
        let Range { start, end } = self.offsets[at]..self.offsets[at] + self.params[at].numel();
        (start / part..end.div_ceil(part)).map(move |gpu| {
            let (from, to) = (gpu * part, (gpu + 1) * part);
            (gpu, end.min(to) - start.max(from))
        })
    }
}

/// A one-dimensional tensor without memory of its own, for the shape of a part of another.
pub(super) fn part_of(t: &Tape, x: &Tensor, elements: u64) -> Tensor {
    t.narrow(&t.view(x, Dims::new(&[x.numel()])), 0, elements)
}

/// A copy in fp32, kept as weights.
pub(super) fn master(t: &Tape, elements: u64) -> Tensor {
    let master = t.as_kind(Kind::Weight, || t.empty([elements], DType::F32, "parameters in fp32"));
    master.storage().classify(Kind::Weight, Why::Parameter);
    master
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    fn groups(sizes: &[u64], world: u64, round_robin: bool) -> Groups {
        let t = Tape::new(Gpu::default());
        let params: Vec<Tensor> = sizes
            .iter()
            .map(|size| t.parameter([*size], DType::Bf16, "weight"))
            .collect();
        // The last two in a group of their own.
        let (first, second) = params.split_at(params.len() - 2);
        Groups::new([first, second].into_iter(), world, round_robin)
    }

    #[test]
    fn every_element_is_kept_by_one_gpu() {
        let sizes = [7, 1000, 1, 64, 333];
        for (world, round_robin) in [(1, false), (2, false), (3, true), (8, true), (64, false)] {
            let groups = groups(&sizes, world, round_robin);
            for group in &groups.list {
                let mut kept = vec![0; world as usize];
                let mut whole = group.padding;
                for &at in &group.order {
                    let slices: Vec<(u64, u64)> = groups.slices(at).collect();
                    assert_eq!(slices.iter().map(|(_, elements)| elements).sum::<u64>(), sizes[at]);
                    slices
                        .iter()
                        .for_each(|(gpu, elements)| kept[*gpu as usize] += elements);
                    let own = slices.iter().find(|(gpu, _)| *gpu == 0).map(|(_, elements)| *elements);
                    assert_eq!(own.is_some(), groups.is_own(at));
                    assert_eq!(
                        own.unwrap_or_default(),
                        if own.is_some() { groups.own_elements(at) } else { 0 }
                    );
                    whole += sizes[at];
                }
                assert!(
                    kept.iter().all(|elements| *elements <= group.part),
                    "{kept:?} of {}",
                    group.part
                );
                assert_eq!(whole, group.part * world);
            }
        }
    }

    #[test]
    fn parameters_go_round_the_gpus() {
        let order = |world, round_robin| -> Vec<Vec<usize>> {
            let groups = groups(&[1; 9], world, round_robin);
            groups.list.into_iter().map(|group| group.order).collect()
        };
        assert_eq!(order(3, true), [vec![0, 3, 6, 1, 4, 2, 5], vec![7, 8]]);
        assert_eq!(order(3, false), [vec![0, 1, 2, 3, 4, 5, 6], vec![7, 8]]);
    }
}
