//! Mixtures of experts in place of a decoder's MLP: keys of the families, and the configuration.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::nn::ExpertSizes;

/// Keys and rules that differ between families of decoders with experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpertKeys {
    /// Keys of the number of experts, and its default.
    pub experts: ([&'static str; 2], u64),
    /// Keys of the experts that each token is sent to, and their default number.
    pub chosen: ([&'static str; 2], u64),
    /// Key of the elements inside each expert, and its default.
    pub intermediate: (&'static str, u64),
    /// Weights of the chosen experts.
    pub weights: ChosenWeights,
    /// True if the router's weight comes before the experts'.
    pub gate_first: bool,
    /// Layers that have an MLP instead.
    pub dense: DenseLayers,
    /// Expert that all tokens pass beside the chosen ones.
    pub shared: SharedKeys,
}

impl ExpertKeys {
    /// Returns true if all layers have experts, whose width has a key of its own.
    pub(super) fn are_everywhere(&self) -> bool {
        self.dense == DenseLayers::Never && self.intermediate.0 != "intermediate_size"
    }
}

/// Keys of the experts that each token is sent to, in most families.
pub(crate) const CHOSEN: [&str; 2] = ["num_experts_per_tok"; 2];

/// Weights of the chosen experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChosenWeights {
    /// Divided by their sum if `norm_topk_prob`, with this default.
    MaybeNormalised(bool),
    /// Always divided by their sum.
    Normalised,
    /// Always divided by their sum, without a change of type after it (Mixtral).
    NormalisedWide,
    /// Sigmoids in fp32, chosen with a correction among the best groups of experts (DeepSeek).
    Grouped(GroupKeys),
    /// Softmax in fp32 times a number, chosen as `topk_method` says (DeepSeek-V2).
    ByMethod,
    /// Softmax in fp32, chosen with a correction (ERNIE 4.5).
    Corrected,
    /// Softmax of the chosen logits, which have biases (gpt-oss).
    OfChosen,
    /// Sigmoids in fp32, chosen with a correction and divided by their sum (MiniMax-M3).
    Sigmoids,
}

/// Keys of a choice among groups of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupKeys {
    /// Default of `n_group`, the groups.
    pub groups: u64,
    /// Default of `topk_group`, the groups that experts are chosen from.
    pub kept: u64,
    /// Default of `norm_topk_prob`.
    pub is_normalised: bool,
    /// True if the correction is made in fp32 whatever the model's type.
    pub wide_correction: bool,
}

/// Layers with an MLP in place of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DenseLayers {
    /// None.
    Never,
    /// `mlp_only_layers`, and those that are no `decoder_sparse_step`-th.
    Listed,
    /// The first `first_k_dense_replace`, with this default.
    First(u64),
    /// Those that `mlp_layer_types` calls dense, or the first `first_k_dense_replace`, with this default.
    Kinds(u64),
    /// Those that `mlp_layer_types` calls dense, or this many first ones.
    KindsOr(u64),
    /// Those outside `moe_layer_start_index` to `moe_layer_end_index`, and those that are no `moe_layer_interval`-th
    /// (ERNIE 4.5).
    Outside,
}

/// Keys of an expert that all tokens pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedKeys {
    /// There is none.
    Never,
    /// One with a gate, the key of its elements, and their default.
    Gated(&'static str, u64),
    /// One as wide as this key's number of experts, with a default number; its output is added to theirs (DeepSeek).
    Added(&'static str, u64),
    /// The same, and a norm of the sum (A.X-K1).
    AddedAndNormed(&'static str, u64),
    /// One as wide as this key's number of experts, with a default number; it runs before the router, and 0 is none
    /// (ERNIE 4.5).
    AddedFirst(&'static str, u64),
    /// One of this key's elements, with a default; it runs before the router (MiniMax-M3).
    OfWidth(&'static str, u64),
}

/// Experts of a decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertsConfig {
    pub(crate) sizes: ExpertSizes,
    /// Experts that each token is sent to.
    pub(super) chosen: u64,
    pub(super) weights: RouterKind,
    /// True if the router's weight comes before the experts'.
    pub(super) gate_first: bool,
    /// Expert that all tokens pass, if there is one, and its elements.
    pub(super) shared: Option<(SharedKind, u64)>,
    /// True for each layer with experts, false for one with an MLP.
    pub sparse: Vec<bool>,
}

/// Kinds of routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouterKind {
    /// Softmax of the logits.
    Softmax {
        /// True if the chosen experts' weights are divided by their sum.
        is_normalised: bool,
        /// True if the weights take the type of the logits.
        narrows: bool,
    },
    /// Sigmoids in fp32, chosen with a correction among the best groups.
    Grouped {
        groups: u64,
        kept: u64,
        is_normalised: bool,
        wide_correction: bool,
    },
    /// Softmax in fp32 times a number, chosen among all, or among this many of that many groups.
    Scaled(Option<[u64; 2]>),
    /// Softmax in fp32, chosen with a correction.
    Corrected,
    /// Softmax of the chosen logits, which have biases.
    OfChosen,
    /// Sigmoids in fp32, chosen with a correction and divided by their sum.
    Sigmoids,
}

/// Kinds of experts that all tokens pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SharedKind {
    /// `shared_expert`, multiplied by a gate.
    Gated,
    /// `shared_experts`, run after the others.
    Added,
    /// The same, and a norm of the sum.
    AddedAndNormed,
    /// `shared_experts`, run before the router.
    AddedFirst,
}

impl ExpertsConfig {
    /// Reads the experts of a decoder of `layers` blocks of `hidden` elements.
    pub(crate) fn read(s: &Section, keys: &ExpertKeys, [hidden, layers]: [u64; 2]) -> Result<Self, ModelError> {
        let (name, default) = keys.intermediate;
        let intermediate = s.size_or(name, default, limits::WIDTH * 4)?;
        Self::read_of_width(s, keys, [hidden, layers], (name, intermediate))
    }

    /// Elements inside the expert that all tokens pass, if there is one.
    pub(crate) fn shared_width(&self) -> Option<u64> {
        self.shared.map(|(_, width)| width)
    }

    /// Reads experts whose width a key of this name gave.
    pub(crate) fn read_of_width(
        s: &Section,
        keys: &ExpertKeys,
        [hidden, layers]: [u64; 2],
        (name, intermediate): (&str, u64),
    ) -> Result<Self, ModelError> {
        refuse_others(s)?;
        let (names, default) = keys.experts;
        let experts = s.size_of_either(names, default, limits::WIDTH)?;
        // The second name is another for the same number, which it would replace.
        let again = s.optional_size(names[1], limits::WIDTH)?.unwrap_or(experts);
        s.equal((names[0], experts), (names[1], again))?;
        let (names, default) = keys.chosen;
        let key = names[usize::from(s.value(names[0]).is_none())];
        let chosen = s.size_or(key, default, experts)?;
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
            weights: router(s, keys.weights, experts)?,
            gate_first: keys.gate_first,
            shared: shared(s, keys.shared, intermediate)?,
            sparse: sparse(s, keys.dense, layers)?,
        })
    }
}

/// Refuses null for keys that have a default in its place.
pub(crate) fn not_null(s: &Section, keys: &[&str]) -> Result<(), ModelError> {
    for key in keys.iter().filter(|key| s.has(key)) {
        s.required(key, "a number: transformers 5.17 fails without one")?;
    }
    Ok(())
}

/// Refuses values of keys that change the tensors and are not simulated.
fn refuse_others(s: &Section) -> Result<(), ModelError> {
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
    )
}

fn router(s: &Section, weights: ChosenWeights, experts: u64) -> Result<RouterKind, ModelError> {
    let softmax = |is_normalised, narrows| RouterKind::Softmax { is_normalised, narrows };
    Ok(match weights {
        ChosenWeights::MaybeNormalised(default) => softmax(s.flag("norm_topk_prob", default)?, true),
        ChosenWeights::Normalised => softmax(true, true),
        ChosenWeights::NormalisedWide => softmax(true, false),
        ChosenWeights::ByMethod => RouterKind::Scaled(limits_of_method(s, experts)?),
        ChosenWeights::Corrected => RouterKind::Corrected,
        ChosenWeights::OfChosen => RouterKind::OfChosen,
        ChosenWeights::Sigmoids => RouterKind::Sigmoids,
        ChosenWeights::Grouped(keys) => {
            let groups = s.size_or("n_group", keys.groups, experts)?;
            let of_group = s.divide(("n_routed_experts", experts), ("n_group", groups))?;
            if of_group < 2 {
                return Err(s.wrong("n_group", &groups.into(), "groups of two experts or more"));
            }
            RouterKind::Grouped {
                groups,
                kept: s.size_or("topk_group", keys.kept, groups)?,
                // Null is false.
                is_normalised: s.flag("norm_topk_prob", keys.is_normalised && !s.has("norm_topk_prob"))?,
                wide_correction: keys.wide_correction,
            }
        }
    })
}

/// Reads how many groups of how many `topk_method` chooses among, if it does.
fn limits_of_method(s: &Section, experts: u64) -> Result<Option<[u64; 2]>, ModelError> {
    match s.optional_text("topk_method")?.unwrap_or("greedy") {
        "greedy" => Ok(None),
        "group_limited_greedy" => {
            for key in ["n_group", "topk_group"] {
                s.required(key, "a number beside topk_method group_limited_greedy")?;
            }
            let groups = s.size_or("n_group", 1, experts)?;
            s.divide(("n_routed_experts", experts), ("n_group", groups))?;
            Ok(Some([s.size_or("topk_group", 1, groups)?, groups]))
        }
        other => Err(s.wrong("topk_method", &other.into(), "greedy or group_limited_greedy")),
    }
}

/// Reads the expert that all tokens pass, beside experts of `intermediate` elements.
fn shared(s: &Section, keys: SharedKeys, intermediate: u64) -> Result<Option<(SharedKind, u64)>, ModelError> {
    Ok(match keys {
        SharedKeys::Never => None,
        SharedKeys::Gated(name, default) => Some((SharedKind::Gated, s.size_or(name, default, limits::WIDTH * 4)?)),
        SharedKeys::Added(name, default) | SharedKeys::AddedAndNormed(name, default) => {
            let count = s.size_or(name, default, limits::COUNT)?;
            let kind = match keys {
                SharedKeys::Added(..) => SharedKind::Added,
                _ => SharedKind::AddedAndNormed,
            };
            Some((kind, count * intermediate))
        }
        SharedKeys::AddedFirst(name, default) => {
            let count = s.optional_count(name, limits::COUNT)?.unwrap_or(default);
            (count > 0).then_some((SharedKind::AddedFirst, count * intermediate))
        }
        SharedKeys::OfWidth(name, default) => {
            Some((SharedKind::AddedFirst, s.size_or(name, default, limits::WIDTH * 4)?))
        }
    })
}

/// Reads which layers have experts.
fn sparse(s: &Section, dense: DenseLayers, layers: u64) -> Result<Vec<bool>, ModelError> {
    let count = |name: &str, default: u64| -> Result<u64, ModelError> {
        Ok(s.optional_count(name, limits::LAYERS)?.unwrap_or(default))
    };
    Ok(match dense {
        DenseLayers::Never => vec![true; layers as usize],
        DenseLayers::Listed => {
            let step = s.size_or("decoder_sparse_step", 1, limits::LAYERS)?;
            let listed = s.optional_indices("mlp_only_layers", limits::LAYERS)?;
            let listed = listed.unwrap_or_default();
            (0..layers)
                .map(|i| !listed.contains(&i) && (i + 1) % step == 0)
                .collect()
        }
        DenseLayers::First(default) => {
            let first = count("first_k_dense_replace", default)?;
            (0..layers).map(|i| i >= first).collect()
        }
        DenseLayers::Kinds(default) => match s.value("mlp_layer_types") {
            Some(kinds) => of_kinds(s, kinds, (layers, true))?,
            None => sparse(s, DenseLayers::First(default), layers)?,
        },
        DenseLayers::KindsOr(first) => match s.value("mlp_layer_types") {
            Some(kinds) => of_kinds(s, kinds, (layers, false))?,
            None => (0..layers).map(|i| i >= first).collect(),
        },
        DenseLayers::Outside => {
            let first = count("moe_layer_start_index", 1)?;
            let end = "moe_layer_end_index";
            let last = match s.value(end).is_some_and(|v| v.as_i64() == Some(-1)) {
                true => layers - 1,
                false => count(end, layers - 1)?,
            };
            let step = s.size_or("moe_layer_interval", 1, limits::LAYERS)?;
            (0..layers)
                .map(|i| (i + 1) % step == 0 && (first..=last).contains(&i))
                .collect()
        }
    })
}

/// Reads which of `layers` have experts from a list of kinds, which may be longer unless it `is_checked`.
fn of_kinds(s: &Section, kinds: &Value, (layers, is_checked): (u64, bool)) -> Result<Vec<bool>, ModelError> {
    let allowed = format!("{layers} entries, each \"sparse\" or \"dense\"");
    let wrong = || s.wrong("mlp_layer_types", kinds, &allowed);
    let fits = |n: u64| n == layers || n > layers && !is_checked;
    let list = kinds.as_array().filter(|list| fits(list.len() as u64));
    list.ok_or_else(wrong)?
        .iter()
        .take(layers as usize)
        .map(|kind| match kind.as_str() {
            Some("sparse") => Ok(true),
            Some("dense") => Ok(false),
            _ => Err(wrong()),
        })
        .collect()
}
