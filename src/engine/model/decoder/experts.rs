//! Mixtures of experts in place of a decoder's MLP: configuration, router and block.

use super::config::DecoderConfig;
use super::layer::{FeedForward, Layer};
use super::mlp::Mlp;
use crate::dtype::DType;
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::nn::{Builder, ExpertSizes, Experts, Linear};
use crate::tape::{Tape, Tensor};

/// Keys and rules that differ between families of decoders with experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpertKeys {
    /// Keys of the number of experts, and its default.
    pub experts: ([&'static str; 2], u64),
    /// Default of the experts that each token is sent to (`num_experts_per_tok`).
    pub chosen: u64,
    /// Key of the elements inside each expert, and its default.
    pub intermediate: (&'static str, u64),
    /// Weights of the chosen experts.
    pub weights: ChosenWeights,
    /// True if the router's weight comes before the experts'.
    pub gate_first: bool,
    /// True if some layers have an MLP instead (`mlp_only_layers`, `decoder_sparse_step`).
    pub some_dense: bool,
    /// Key of the elements inside an expert that all tokens pass beside the chosen ones, and its default; `None` if there
    /// is none.
    pub shared: Option<(&'static str, u64)>,
}

/// Weights of the chosen experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChosenWeights {
    /// Divided by their sum if `norm_topk_prob`.
    MaybeNormalised,
    /// Always divided by their sum, without a change of type after it (Mixtral).
    Normalised,
}

/// Experts of a decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertsConfig {
    sizes: ExpertSizes,
    /// Experts that each token is sent to.
    chosen: u64,
    /// True if the chosen experts' weights are divided by their sum.
    is_normalised: bool,
    /// True if the weights take the type of the logits.
    narrows: bool,
    /// True if the router's weight comes before the experts'.
    gate_first: bool,
    /// Elements inside the expert that all tokens pass, if there is one.
    shared: Option<u64>,
    /// True for each layer with experts, false for one with an MLP.
    pub sparse: Vec<bool>,
}

impl ExpertsConfig {
    /// Reads the experts of a decoder of `layers` blocks of `hidden` elements.
    pub(crate) fn read(s: &Section, keys: &ExpertKeys, [hidden, layers]: [u64; 2]) -> Result<Self, ModelError> {
        s.only(
            "output_router_logits",
            "false: the loss that balances experts is not simulated",
            |v| v.as_bool() == Some(false),
        )?;
        s.only(
            "router_jitter_noise",
            "0: noise on the router's input is not simulated",
            |v| v.as_f64() == Some(0.0),
        )?;
        s.only(
            "experts_implementation",
            "grouped_mm, which transformers takes by default",
            |v| v.as_str() == Some("grouped_mm"),
        )?;
        let (names, default) = keys.experts;
        let experts = s.size_of_either(names, default, limits::WIDTH)?;
        let chosen = s.size_or("num_experts_per_tok", keys.chosen, experts)?;
        let (name, default) = keys.intermediate;
        let intermediate = s.size_or(name, default, limits::WIDTH * 4)?;
        // `grouped_mm` refuses rows that are not a multiple of 16 bytes.
        for (name, size) in [(name, intermediate), ("hidden_size", hidden)] {
            if size % 8 != 0 {
                return Err(s.wrong(name, &size.into(), "a multiple of 8 beside experts (grouped_mm)"));
            }
        }
        Ok(Self {
            sizes: ExpertSizes {
                experts,
                hidden,
                intermediate,
            },
            chosen,
            is_normalised: match keys.weights {
                ChosenWeights::MaybeNormalised => s.flag("norm_topk_prob", false)?,
                ChosenWeights::Normalised => true,
            },
            gate_first: keys.gate_first,
            shared: match keys.shared {
                Some((name, default)) => Some(s.size_or(name, default, limits::WIDTH * 4)?),
                None => None,
            },
            narrows: keys.weights == ChosenWeights::MaybeNormalised,
            sparse: match keys.some_dense {
                true => sparse(s, layers)?,
                false => vec![true; layers as usize],
            },
        })
    }
}

/// Reads which layers have experts: each `decoder_sparse_step`-th that is not among `mlp_only_layers`.
fn sparse(s: &Section, layers: u64) -> Result<Vec<bool>, ModelError> {
    let step = s.size_or("decoder_sparse_step", 1, limits::LAYERS)?;
    let dense = s
        .optional_indices("mlp_only_layers", limits::LAYERS)?
        .unwrap_or_default();
    Ok((0..layers)
        .map(|i| !dense.contains(&i) && (i + 1) % step == 0)
        .collect())
}

/// Makes a block of a decoder with experts: Llama's, with experts or an MLP.
pub(crate) struct ExpertLayer;

impl ExpertLayer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Layer {
        let Some(experts) = c.experts.as_ref().filter(|experts| experts.sparse[index]) else {
            return Layer::new(b, c, index);
        };
        Layer::with_mlp(b, c, index, &|| Box::new(SparseMlp::new(b, c, experts)))
    }
}

/// `Qwen3MoeSparseMoeBlock` and its variants.
struct SparseMlp {
    experts: Experts,
    /// Weight of the router, [experts, hidden].
    gate: Tensor,
    /// An expert that all tokens pass, and its gate.
    shared: Option<(Mlp, Linear)>,
    chosen: u64,
    is_normalised: bool,
    narrows: bool,
}

impl SparseMlp {
    fn new(b: &Builder, c: &DecoderConfig, e: &ExpertsConfig) -> Self {
        let t = b.tape();
        let gate = || t.scope("gate", || b.weight("weight", [e.sizes.experts, e.sizes.hidden]));
        let first = e.gate_first.then(gate);
        let experts = Experts::new(b, "experts", e.sizes, c.activation);
        let gate = first.unwrap_or_else(gate);
        let shared = e.shared.map(|intermediate| {
            let mlp = t.scope("shared_expert", || {
                Mlp::of(b, [c.hidden, intermediate], false, c.activation)
            });
            (mlp, Linear::new(b, "shared_expert_gate", c.hidden, 1, false))
        });
        Self {
            experts,
            gate,
            shared,
            chosen: e.chosen,
            is_normalised: e.is_normalised,
            narrows: e.narrows,
        }
    }

    /// Tokens [n, hidden] → logits [n, experts], and weights and indices of the chosen experts, [n, chosen].
    fn route(&self, t: &Tape, x: &Tensor) -> [Tensor; 3] {
        // `reshape` to the same shape is a node of the graph too.
        let logits = t.linear(&t.view(x, *x.shape()), &self.gate, None);
        let probs = t.softmax(&logits, Some(DType::F32));
        let [mut weights, indices] = t.topk(&probs, self.chosen);
        if self.is_normalised {
            let sum = t.sum_last(&weights);
            weights = t.div_(weights, &sum);
        }
        if self.narrows {
            weights = t.to_dtype(&weights, logits.dtype());
        }
        [logits, weights, indices]
    }
}

impl FeedForward for SparseMlp {
    fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        let shape = *x.shape();
        let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
        let of_shared = |mlp: &Mlp| t.scope("shared_expert", || mlp.forward(t, rows.clone()));
        let mut shared = self.shared.as_ref().map(|(mlp, _)| of_shared(mlp));
        let [_logits, weights, indices] = t.scope("gate", || self.route(t, &rows));
        let mut out = t.scope("experts", || self.experts.forward(t, &rows, &indices, &weights));
        if let (Some((_, gate)), Some(output)) = (&self.shared, shared.take()) {
            let weighted = {
                let opened = t.sigmoid(&t.scope("shared_expert_gate", || gate.forward(t, &rows)));
                t.mul(&opened, &output)
            };
            drop(output);
            out = t.add(&out, &weighted);
            shared = Some(weighted);
        }
        let out = t.reshape(&out, shape);
        drop(shared);
        out
    }
}
