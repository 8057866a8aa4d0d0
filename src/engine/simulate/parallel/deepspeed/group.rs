//! Parameters in one flat buffer, cut into a part for each GPU (`DeepSpeedZeroOptimizer.__init__`).

use std::ops::Range;

use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::{Kind, Tape, Tensor, Why};

/// The trained parameters, in the order of the flat buffer.
pub(super) struct Group {
    /// Parameters in the client's order.
    pub params: Vec<Tensor>,
    /// First element of each in the flat buffer.
    offsets: Vec<u64>,
    /// Indices of the parameters in the order of the flat buffer.
    pub order: Vec<usize>,
    /// Elements of each GPU's part.
    pub part: u64,
    /// Zeros that align the parts, in elements.
    pub padding: u64,
}

/// Elements to which each part is aligned (`nccl_start_alignment_factor`).
const ALIGNMENT: u64 = 2;

impl Group {
    /// Places parameters, one after the other, or those of each GPU together (`_round_robin_reorder`).
    pub fn new(params: Vec<Tensor>, world: u64, round_robin: bool) -> Self {
        let mut order: Vec<usize> = (0..params.len()).collect();
        if round_robin {
            order.sort_by_key(|at| *at as u64 % world);
        }
        let mut offsets = vec![0; params.len()];
        let mut end = 0;
        for &at in &order {
            offsets[at] = end;
            end += params[at].numel();
        }
        let whole = end.next_multiple_of(ALIGNMENT * world);
        Self {
            params,
            offsets,
            order,
            part: whole / world,
            padding: whole - end,
        }
    }

    /// Elements of the flat buffer.
    pub fn whole(&self, world: u64) -> u64 {
        self.part * world
    }

    /// Copies the parameters into the flat buffer, of which they are parts from then on.
    pub fn flatten(&self, t: &Tape, world: u64) -> Tensor {
        let dtype = self.params[0].dtype();
        let pad = (self.padding > 0).then(|| t.empty([self.padding], dtype, "padding"));
        let flat = match (&self.params[..], &pad) {
            ([only], None) => t.view(&only.detach(), [only.numel()]),
            _ => t.as_kind(Kind::Weight, || t.empty([self.whole(world)], dtype, "flat parameters")),
        };
        flat.storage().classify(Kind::Weight, Why::Parameter);
        drop(pad);
        if self.params.len() > 1 || self.padding > 0 {
            self.params.iter().for_each(|param| t.give_up(param));
        }
        flat
    }

    /// Index of a parameter.
    pub fn index(&self, param: &Tensor) -> Option<usize> {
        self.params.iter().position(|known| known.is(param))
    }

    /// Parameters of which this GPU, the first, keeps elements.
    pub fn own(&self) -> impl Iterator<Item = usize> + '_ {
        self.order.iter().copied().filter(|at| self.offsets[*at] < self.part)
    }

    /// Returns true if this GPU keeps elements of a parameter.
    pub fn is_own(&self, at: usize) -> bool {
        self.offsets[at] < self.part
    }

    /// Elements of a parameter that this GPU keeps.
    pub fn own_elements(&self, at: usize) -> u64 {
        (self.part - self.offsets[at]).min(self.params[at].numel())
    }

    /// GPUs that keep elements of a parameter, each with the number of them.
    pub fn slices(&self, at: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let Range { start, end } = self.offsets[at]..self.offsets[at] + self.params[at].numel();
        (start / self.part..end.div_ceil(self.part)).map(move |gpu| {
            let (from, to) = (gpu * self.part, (gpu + 1) * self.part);
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

    fn group(sizes: &[u64], world: u64, round_robin: bool) -> Group {
        let t = Tape::new(Gpu::default());
        let params = sizes
            .iter()
            .map(|size| t.parameter([*size], DType::Bf16, "weight"))
            .collect();
        Group::new(params, world, round_robin)
    }

    #[test]
    fn every_element_is_kept_by_one_gpu() {
        let sizes = [7, 1000, 1, 64, 333];
        for (world, round_robin) in [(1, false), (2, false), (3, true), (8, true), (64, false)] {
            let group = group(&sizes, world, round_robin);
            let mut kept = vec![0; world as usize];
            for (at, size) in sizes.iter().enumerate() {
                let slices: Vec<(u64, u64)> = group.slices(at).collect();
                assert_eq!(slices.iter().map(|(_, elements)| elements).sum::<u64>(), *size);
                slices
                    .iter()
                    .for_each(|(gpu, elements)| kept[*gpu as usize] += elements);
                let own = slices.iter().find(|(gpu, _)| *gpu == 0).map(|(_, elements)| *elements);
                assert_eq!(own.is_some(), group.is_own(at));
                assert_eq!(
                    own.unwrap_or_default(),
                    if own.is_some() { group.own_elements(at) } else { 0 }
                );
            }
            assert!(
                kept.iter().all(|elements| *elements <= group.part),
                "{kept:?} of {}",
                group.part
            );
            let whole = sizes.iter().sum::<u64>() + group.padding;
            assert_eq!(whole, group.whole(world));
        }
    }

    #[test]
    fn parameters_go_round_the_gpus() {
        assert_eq!(group(&[1; 7], 3, true).order, [0, 3, 6, 1, 4, 2, 5]);
        assert_eq!(group(&[1; 3], 3, false).order, [0, 1, 2]);
    }
}
