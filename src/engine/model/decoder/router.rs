//! Routers: the choice of experts for each token.

use std::rc::Rc;

use super::expert_keys::{GroupScores, SigmoidForm};
use super::experts::{ExpertsConfig, RouterKind};
use crate::dtype::DType;
use crate::nn::{Active, Builder, ExpertSizes, Linear, Wrapped};
use crate::tape::{Module, Tape, Tensor};

/// `Qwen3MoeTopKRouter`, `DeepseekV3TopkRouter` and their variants.
pub(crate) struct Router {
    module: Module,
    weight: Weight,
    /// Correction of the choice, [experts] or [1, experts], or bias of the logits, [experts].
    correction: Option<Tensor>,
    sizes: ExpertSizes,
    chosen: u64,
    kind: RouterKind,
}

/// Weight of a router, [experts, hidden].
enum Weight {
    Parameter(Rc<Wrapped>),
    /// `wg` (HunYuan).
    Map(Linear),
}

impl Router {
    pub fn new(b: &Builder, e: &ExpertsConfig) -> Self {
        let shape = [e.sizes.experts, e.sizes.hidden];
        let parameter = |weight| Weight::Parameter(Wrapped::of(b, "weight", weight));
        let weight = match e.weights {
            RouterKind::Corrected => parameter(b.weight_of("weight", shape, DType::F32)),
            RouterKind::NormalisedProduct => Weight::Map(Linear::in_f32(b, "wg", e.sizes.hidden, e.sizes.experts)),
            _ => parameter(b.weight("weight", shape)),
        };
        let name = "e_score_correction_bias";
        let correction = match e.weights {
            RouterKind::Softmax { .. }
            | RouterKind::Scaled(_)
            | RouterKind::OfChosenInF32
            | RouterKind::SoftmaxOfChosen
            | RouterKind::SigmoidsOfChosen { .. }
            | RouterKind::NormalisedProduct
            | RouterKind::OfBlock => None,
            RouterKind::Sigmoids(form) => form.corrects.then(|| b.buffer(name, [e.sizes.experts], b.dtype())),
            RouterKind::OfChosen => Some(b.weight("bias", [e.sizes.experts])),
            RouterKind::Grouped { scores, .. } => {
                let dtype = match scores {
                    GroupScores::Sigmoids => Some(b.dtype()),
                    GroupScores::SigmoidsCorrectedInF32 => Some(DType::F32),
                    GroupScores::Softmax => None,
                };
                dtype.map(|dtype| b.buffer(name, [e.sizes.experts], dtype))
            }
            RouterKind::MaybeGrouped { .. } => Some(b.buffer(name, [e.sizes.experts], DType::F32)),
            RouterKind::Corrected => Some(b.tape().scope("moe_statics", || {
                b.frozen_weight_of(name, [1, e.sizes.experts], DType::F32)
            })),
        };
        Self {
            module: b.module(),
            weight,
            correction,
            sizes: e.sizes,
            chosen: e.chosen,
            kind: e.weights,
        }
    }

    /// Makes the correction that the block holds, once its experts are made, if there is one.
    pub fn corrected_by_block(self, b: &Builder) -> Self {
        match self.kind {
            RouterKind::Sigmoids(form) if !form.corrects => Self {
                correction: Some(b.buffer("e_score_correction_bias", [self.sizes.experts], b.dtype())),
                ..self
            },
            _ => self,
        }
    }

    /// Returns true if experts are chosen among the best groups of them.
    pub fn is_grouped(&self) -> bool {
        matches!(self.kind, RouterKind::Grouped { .. } | RouterKind::MaybeGrouped { .. })
    }

    /// Tokens [.., hidden] → logits [n, experts], and weights and indices of the chosen experts, [n, chosen].
    pub fn call(&self, t: &Tape, x: &Tensor) -> [Tensor; 3] {
        self.module.call(t, move || {
            let weight = match &self.weight {
                Weight::Parameter(weight) => &weight.activate(t),
                Weight::Map(map) => return self.normalised_product(t, x, map),
            };
            match (self.kind, &self.correction) {
                (RouterKind::Softmax { is_normalised, narrows }, _) => {
                    self.softmax(t, x, weight, [is_normalised, narrows])
                }
                (
                    RouterKind::Grouped {
                        groups,
                        kept,
                        is_normalised,
                        ..
                    },
                    correction,
                ) => self.grouped(t, x, weight, correction.as_ref(), [groups, kept], is_normalised),
                (RouterKind::MaybeGrouped { groups, is_normalised }, Some(correction)) => {
                    self.maybe_grouped(t, x, weight, correction, groups, is_normalised)
                }
                (RouterKind::Scaled(limits), _) => self.scaled(t, x, weight, limits),
                (RouterKind::OfChosen, bias) => {
                    let logits = t.linear(x, weight.get(t), bias.as_ref());
                    let [values, indices] = t.topk(&logits, self.chosen);
                    let weights = t.softmax(&values, Some(values.dtype()));
                    [logits, weights, indices]
                }
                (RouterKind::Corrected, Some(correction)) => self.corrected(t, x, weight, correction),
                (RouterKind::OfChosenInF32, _) => self.of_chosen_in_f32(t, x, weight),
                (RouterKind::SoftmaxOfChosen, _) => self.selected(t, x, weight, None),
                (RouterKind::SigmoidsOfChosen { is_normalised }, _) => self.selected(t, x, weight, Some(is_normalised)),
                (RouterKind::Sigmoids(form), Some(correction)) => self.sigmoids(t, x, weight, (correction, form)),
                (RouterKind::NormalisedProduct, _) => unreachable!("such a router has a map"),
                (RouterKind::OfBlock, _) => unreachable!("such a block has a router of its own"),
                (RouterKind::Corrected | RouterKind::Sigmoids(_) | RouterKind::MaybeGrouped { .. }, None) => {
                    unreachable!("such a router has a correction")
                }
            }
        })
    }

    fn softmax(&self, t: &Tape, x: &Tensor, weight: &Active<'_>, [is_normalised, narrows]: [bool; 2]) -> [Tensor; 3] {
        // `reshape` to the same shape is a node of the graph too.
        let logits = t.linear(&t.view(x, *x.shape()), weight.get(t), None);
        let probs = t.softmax(&logits, Some(DType::F32));
        let [mut weights, indices] = t.topk(&probs, self.chosen);
        if is_normalised {
            let sum = t.sum_last(&weights);
            weights = t.div_(weights, &sum);
        }
        if narrows {
            weights = t.to_dtype(&weights, logits.dtype());
        }
        [logits, weights, indices]
    }

    /// `DeepseekV2TopkRouter.forward`.
    fn scaled(&self, t: &Tape, x: &Tensor, weight: &Active<'_>, limits: Option<[u64; 2]>) -> [Tensor; 3] {
        let experts = self.sizes.experts;
        let (n, logits) = wide_logits(t, x, weight);
        let mut scores = t.softmax(&logits, Some(DType::F32));
        let mut _locals = None;
        if let Some([kept, groups]) = limits {
            let best = t.max_last(&t.view(&scores, [n, groups, experts / groups]));
            let best = t.squeeze(&best, 2);
            let [_, places] = t.topk(&best, kept);
            let masks;
            (scores, masks) = within_groups(t, &scores, &best);
            _locals = Some((best, places, masks));
        }
        let [mut weights, indices] = t.topk(&scores, self.chosen);
        weights = t.scale(&weights);
        [logits, weights, indices]
    }

    /// `GraniteMoeTopKRouter.forward`.
    fn of_chosen_in_f32(&self, t: &Tape, x: &Tensor, weight: &Active<'_>) -> [Tensor; 3] {
        let logits = t.to_dtype(&t.linear(x, weight.get(t), None), DType::F32);
        let [_values, indices] = t.topk(&logits, self.chosen);
        let weights = t.to_dtype(&t.softmax(&_values, None), x.dtype());
        [logits, weights, indices]
    }

    /// `Cohere2MoeTopKRouter.forward`: sigmoids, divided by their sum or not, or softmax.
    fn selected(&self, t: &Tape, x: &Tensor, weight: &Active<'_>, sigmoids: Option<bool>) -> [Tensor; 3] {
        let logits = t.linear(x, weight.get(t), None);
        let [mut weights, indices] = t.topk(&logits, self.chosen);
        weights = match sigmoids {
            Some(_) => t.sigmoid(&weights),
            None => t.softmax(&weights, Some(DType::F32)),
        };
        if sigmoids == Some(true) {
            weights = {
                let sum = t.sum_last(&weights);
                t.div(&weights, &sum)
            };
        }
        let weights = t.to_dtype(&weights, x.dtype());
        [logits, weights, indices]
    }

    /// `HunYuanMoEV1Gate.forward`.
    fn normalised_product(&self, t: &Tape, x: &Tensor, wg: &Linear) -> [Tensor; 3] {
        // `reshape` to the same shape is a node of the graph too.
        let wide = t.to_dtype(&t.view(x, *x.shape()), DType::F32);
        let logits = wg.call(t, &wide);
        let probs = t.softmax(&logits, Some(DType::F32));
        let [mut weights, indices] = t.topk(&probs, self.chosen);
        drop(probs);
        {
            let sum = t.sum_last(&weights);
            weights = t.div_(weights, &sum);
        }
        let weights = t.to_dtype(&weights, logits.dtype());
        [logits, weights, indices]
    }

    /// `MiniMaxM2TopKRouter.forward`, `MiniMaxM3VLTopKRouter.forward` and `HYV3TopKRouter.forward`.
    fn sigmoids(
        &self,
        t: &Tape,
        x: &Tensor,
        weight: &Active<'_>,
        (correction, form): (&Tensor, SigmoidForm),
    ) -> [Tensor; 3] {
        let rows = t.view(x, *x.shape());
        let logits = if form.wide {
            let wide = t.to_dtype(&rows, DType::F32);
            t.linear(&wide, &t.to_dtype(weight.get(t), DType::F32), None)
        } else {
            let weight = weight.get(t);
            t.linear(&t.to_dtype(&rows, weight.dtype()), weight, None)
        };
        drop(rows);
        let scores = match form.wide {
            true => t.sigmoid(&logits),
            false => t.sigmoid(&t.to_dtype(&logits, DType::F32)),
        };
        let choice = t.add(&scores, correction);
        let [_values, indices] = t.topk(&choice, self.chosen);
        let mut weights = t.gather_last(&scores, &indices);
        if form.in_place {
            let sum = t.sum_last(&weights);
            weights = t.div_(weights, &sum);
        } else {
            weights = {
                let shifted = t.shift(&t.sum_last(&weights));
                t.div(&weights, &shifted)
            };
            weights = t.scale(&weights);
        }
        drop((scores, choice));
        [logits, weights, indices]
    }

    /// `DeepseekV3TopkRouter.forward`; `Mistral4TopkRouter.forward` without a correction.
    fn grouped(
        &self,
        t: &Tape,
        x: &Tensor,
        weight: &Active<'_>,
        correction: Option<&Tensor>,
        [groups, kept]: [u64; 2],
        is_normalised: bool,
    ) -> [Tensor; 3] {
        let experts = self.sizes.experts;
        let n = x.numel() / x.last();
        let (logits, scores, mut choice);
        match correction {
            Some(correction) => {
                (_, logits) = wide_logits(t, x, weight);
                scores = t.sigmoid(&logits);
                choice = t.add(&scores, correction);
            }
            None => {
                logits = t.linear(&t.view(x, [n, x.last()]), weight.get(t), None);
                scores = t.softmax(&logits, None);
                choice = scores.clone();
            }
        }
        let of_groups = {
            let [best, places] = t.topk(&t.view(&choice, [n, groups, experts / groups]), 2);
            drop(places);
            t.sum_dim(&best, 2)
        };
        let [_, _places] = t.topk(&of_groups, kept);
        let masks;
        (choice, masks) = within_groups(t, &choice, &of_groups);
        let [values, indices] = t.topk(&choice, self.chosen);
        drop(values);
        let mut weights = t.gather_last(&scores, &indices);
        let mut _denominator = None;
        if is_normalised {
            let shifted = t.shift(&t.sum_last(&weights));
            weights = t.div_(weights, &shifted);
            _denominator = Some(shifted);
        }
        let weights = t.scale(&weights);
        drop((choice, of_groups, masks));
        [logits, weights, indices]
    }

    /// `AXK2TopkRouter.forward`.
    fn maybe_grouped(
        &self,
        t: &Tape,
        x: &Tensor,
        weight: &Active<'_>,
        correction: &Tensor,
        groups: Option<[u64; 2]>,
        is_normalised: bool,
    ) -> [Tensor; 3] {
        let (n, logits) = wide_logits(t, x, weight);
        let scores = t.sigmoid(&logits);
        let mut choice = t.add(&scores, correction);
        if let Some([kept, groups]) = groups {
            choice = {
                let of_groups = {
                    let [best, places] = t.topk(&t.view(&choice, [n, groups, choice.last() / groups]), 2);
                    drop(places);
                    t.sum_dim(&best, 2)
                };
                let [_, _places] = t.topk(&of_groups, kept);
                within_groups(t, &choice, &of_groups).0
            };
        }
        let [values, indices] = t.topk(&choice, self.chosen);
        drop(values);
        let mut weights = t.gather_last(&scores, &indices);
        let mut _denominator = None;
        if is_normalised {
            let shifted = t.shift(&t.sum_last(&weights));
            weights = t.div_(weights, &shifted);
            _denominator = Some(shifted);
        }
        let weights = t.scale(&weights);
        drop(choice);
        [logits, weights, indices]
    }

    /// `Ernie4_5_MoeTopKRouter.forward`.
    fn corrected(&self, t: &Tape, x: &Tensor, weight: &Active<'_>, correction: &Tensor) -> [Tensor; 3] {
        t.autocast(None, || {
            let logits = {
                let wide = t.to_dtype(x, DType::F32);
                let weight = t.to_dtype(weight.get(t), DType::F32);
                t.linear(&wide, &weight, None)
            };
            let mut weights = t.softmax(&logits, Some(DType::F32));
            let [_values, indices] = {
                let corrected = t.scope("moe_statics", || t.add(&weights, &t.squeeze(correction, 0)));
                t.topk(&corrected, self.chosen)
            };
            weights = t.gather_last(&weights, &indices);
            weights = {
                let sum = t.clamp(&t.sum_last(&weights));
                t.div(&weights, &sum)
            };
            let weights = t.to_dtype(&weights, x.dtype());
            [logits, weights, indices]
        })
    }
}

/// Number of tokens, and their logits in fp32.
fn wide_logits(t: &Tape, x: &Tensor, weight: &Active<'_>) -> (u64, Tensor) {
    let rows = t.view(x, [x.numel() / x.last(), x.last()]);
    let wide = t.to_dtype(&rows, DType::F32);
    let weight = t.to_dtype(weight.get(t), DType::F32);
    (rows.size(0), t.linear(&wide, &weight, None))
}

/// Scores [n, experts] without those of groups that are not among the best `of_groups` [n, groups], and both masks, which
/// the caller's variables hold.
fn within_groups(t: &Tape, scores: &Tensor, of_groups: &Tensor) -> (Tensor, [Tensor; 2]) {
    let [n, experts, groups] = [scores.size(0), scores.last(), of_groups.last()];
    let group_mask = t.compute(of_groups, of_groups.dtype(), "zeros_like");
    let score_mask = {
        let stretched = t.expand(&t.unsqueeze(&group_mask, 2), [n, groups, experts / groups]);
        t.reshape(&stretched, [n, experts])
    };
    let kept = t.empty([n, experts], DType::Bool, "to bool");
    let others = t.empty([n, experts], DType::Bool, "bitwise_not");
    drop(kept);
    (t.masked_fill(scores, &others), [group_mask, score_mask])
}
