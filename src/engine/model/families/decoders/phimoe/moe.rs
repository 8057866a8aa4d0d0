//! PhiMoE's experts, two of which are drawn for each token (`transformers/models/phimoe/modeling_phimoe.py`).

use std::rc::Rc;

use crate::dtype::DType;
use crate::model::decoder::layer::{FeedForward, Layer};
use crate::model::decoder::{DecoderConfig, ExpertsConfig};
use crate::nn::{Activation, Builder, Experts, Wrapped};
use crate::tape::{Module, Tape, Tensor};

/// Makes a block of PhiMoE: Llama's, with experts in place of the MLP.
pub(crate) struct ExpertLayer;

impl ExpertLayer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Layer {
        let Some(experts) = &c.experts else {
            unreachable!("the family has experts")
        };
        Layer::with_mlp(b, c, index, &|| Box::new(SparseMlp::new(b, c.activation, experts)))
    }
}

/// `PhimoeSparseMoeBlock`.
struct SparseMlp {
    module: Module,
    /// Weight of `PhimoeTopKRouter`, [experts, hidden].
    router: Rc<Wrapped>,
    experts: Experts,
}

impl SparseMlp {
    fn new(b: &Builder, activation: Activation, e: &ExpertsConfig) -> Self {
        let shape = [e.sizes.experts, e.sizes.hidden];
        Self {
            module: b.module(),
            router: b.tape().scope("router", || Wrapped::new(b, "weight", shape)),
            experts: Experts::new(b, "experts", e.sizes, activation),
        }
    }
}

impl FeedForward for SparseMlp {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let shape = *x.shape();
            let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
            let [_scores, weights, chosen] = t.scope("router", || {
                let weight = self.router.activate(t);
                let scores = t.linear(&rows, weight.get(t), None);
                let [weights, chosen] = mixed(t, &scores);
                [scores, weights, chosen]
            });
            let out = self.experts.call(t, &rows, &chosen, &weights);
            t.view(&out, shape)
        })
    }
}

/// `sparsemixer`: weights and indices of two experts, [n, 2] each, for scores [n, experts].
fn mixed(t: &Tape, scores: &Tensor) -> [Tensor; 2] {
    let mut held = Held::default();
    let (first_weight, first) = drawn(t, scores, scores, &mut held);
    let others = t.scatter_number(scores, &first);
    let (second_weight, second) = drawn(t, scores, &others, &mut held);
    let weights = t.cat(&[&first_weight, &second_weight], 1);
    drop(first_weight);
    let chosen = t.empty([scores.size(0), 2], DType::I64, "cat");
    drop((held, others, first, second));
    [weights, chosen]
}

/// Variables of the mixer that the second draw replaces.
#[derive(Default)]
struct Held {
    /// Experts that are out of reach.
    hidden: Option<Tensor>,
    factor: Option<Tensor>,
    /// Greatest scores, and their places.
    most: Option<Tensor>,
    places: Option<Tensor>,
    /// Other variables, which live until the mixer returns.
    _others: Vec<Tensor>,
}

/// Draws an expert among those with the greatest of `open` scores: its weight and its index, [n, 1] each. `scores` are those
/// of all experts.
fn drawn(t: &Tape, scores: &Tensor, open: &Tensor, held: &mut Held) -> (Tensor, Tensor) {
    let n = open.size(0);
    let like = |name| t.compute(open, open.dtype(), name);
    let ids = |name| t.empty([n, 1], DType::I64, name);
    let hidden = {
        let most = t.empty([n, 1], open.dtype(), "max");
        let places = ids("places of max");
        held.hidden = None;
        held.places = Some(places);
        let factor = {
            let _sizes = like("abs");
            like("clamp")
        };
        held.factor = Some(factor);
        let shares = {
            let _differences = like("sub");
            like("div")
        };
        let hidden = t.compute(&shares, DType::Bool, "comparison");
        drop((shares, most));
        held.hidden = Some(hidden.clone());
        hidden
    };
    let masked = t.masked_fill(open, &hidden);
    let chosen = {
        let noisy = {
            // Autocast computes logarithms in fp32.
            let logarithms = {
                let noise = like("empty_like");
                let wide = t.cast_high(&noise);
                let logarithms = t.compute(&wide, wide.dtype(), "log");
                drop((wide, noise));
                logarithms
            };
            t.compute(&logarithms, logarithms.dtype(), "sub")
        };
        let values = t.empty([n], noisy.dtype(), "max");
        let chosen = t.empty([n], DType::I64, "places of max");
        drop((noisy, values));
        t.unsqueeze(&chosen, 1)
    };
    let probabilities = t.softmax(&masked, None);
    drop(masked);
    let weight = t.gather_last(&probabilities, &chosen);
    let kept = thinned(t, &probabilities, held);
    let out = t.phimoe_multiplier(scores, &weight, &chosen, &probabilities);
    drop(hidden);
    held._others.extend([weight, probabilities, kept]);
    (out, chosen)
}

/// `mask_for_one`: a factor of each row, [n, 1], at random or by having the greatest probability.
fn thinned(t: &Tape, probabilities: &Tensor, held: &mut Held) -> Tensor {
    let n = probabilities.size(0);
    let [most, places] = t.max_with_places(probabilities);
    held.most = Some(most);
    held.places = Some(places);
    let flags = |name| t.empty([n, 1], DType::Bool, name);
    let either = {
        let same = flags("comparison");
        let above = {
            let _random = t.empty([n, 1], probabilities.dtype(), "rand_like");
            flags("comparison")
        };
        let either = flags("logical_or");
        drop((same, above));
        either
    };
    let wide = t.empty([n, 1], DType::F32, "add");
    let kept = t.to_dtype(&wide, probabilities.dtype());
    drop((wide, either));
    kept
}
