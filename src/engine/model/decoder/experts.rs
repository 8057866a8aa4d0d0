//! Mixtures of experts in place of a decoder's MLP: the configuration, and how it is read.

use serde_json::Value;

use super::expert_keys::{
    ChosenWeights, DenseLayers, ExpertKeys, GroupKeys, GroupScores, OfDense, SharedKeys, SigmoidForm,
};
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::nn::ExpertSizes;

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
    /// True if layers with an MLP rotate queries and keys whatever they see.
    pub(super) dense_rope: bool,
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
    /// Scores of experts that are chosen among the best groups.
    Grouped {
        groups: u64,
        kept: u64,
        is_normalised: bool,
        scores: GroupScores,
    },
    /// Sigmoids in fp32 with a correction in fp32, chosen among all, or among this many of that many groups.
    MaybeGrouped {
        groups: Option<[u64; 2]>,
        is_normalised: bool,
    },
    /// Softmax in fp32 times a number, chosen among all, or among this many of that many groups.
    Scaled(Option<[u64; 2]>),
    /// Softmax in fp32, chosen with a correction.
    Corrected,
    /// Softmax of the chosen logits, which have biases.
    OfChosen,
    /// Softmax of the chosen logits in fp32.
    OfChosenInF32,
    /// Softmax of the chosen logits in fp32, back in the type of the tokens.
    SoftmaxOfChosen,
    /// Sigmoids of the chosen logits.
    SigmoidsOfChosen {
        /// True if they are divided by their sum.
        is_normalised: bool,
    },
    /// Softmax of logits of a product in fp32, divided by their sum.
    NormalisedProduct,
    /// Sigmoids in fp32, chosen with a correction.
    Sigmoids(SigmoidForm),
    /// A router that the family's own block has.
    OfBlock,
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
    /// `shared_experts`, run last.
    Last(Combination),
    /// `shared_mlp`, run first and added last.
    Beside,
    /// Beside the experts' module.
    Outside,
}

/// Combination of what the chosen experts make with what all tokens pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combination {
    /// Their sum.
    Sum,
    /// Their sum in fp32, back in their type.
    SumInF32,
    /// Half of their sum.
    Average,
}

impl ExpertsConfig {
    /// Experts that each token is sent to.
    pub(crate) const fn chosen(&self) -> u64 {
        self.chosen
    }

    /// Elements of the expert that all tokens pass, if there is one.
    pub(crate) fn shared_width(&self) -> Option<u64> {
        self.shared.map(|(_, width)| width)
    }

    /// Reads the experts of a decoder of `layers` blocks of `hidden` elements.
    pub(crate) fn read(s: &Section, keys: &ExpertKeys, [hidden, layers]: [u64; 2]) -> Result<Self, ModelError> {
        let (name, default) = keys.intermediate;
        let intermediate = s.size_of_class(name, default, limits::WIDTH * 4)?;
        Self::read_of_width(s, keys, [hidden, layers], (name, intermediate))
    }

    /// Reads experts whose width a key of this name gave.
    pub(crate) fn read_of_width(
        s: &Section,
        keys: &ExpertKeys,
        [hidden, layers]: [u64; 2],
        (name, intermediate): (&str, u64),
    ) -> Result<Self, ModelError> {
        refuse_others(s, keys.weights)?;
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
            if size % 8 != 0 && keys.weights != ChosenWeights::OfBlockInTurn {
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
            dense_rope: match keys.of_dense {
                OfDense::Usual => false,
                OfDense::Prefix([_, pattern]) => s.size_or(pattern, 1, limits::LAYERS)? == 1,
            },
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

/// Refuses a list of the layers' kinds that is not as long as there are layers, which transformers checks of some families.
pub(crate) fn each_layer_has_a_kind(s: &Section) -> Result<(), ModelError> {
    let layers = s.value("num_hidden_layers").and_then(Value::as_u64);
    s.only("mlp_layer_types", "as many entries as num_hidden_layers", |kinds| {
        let count = kinds.as_array().map(|kinds| kinds.len() as u64);
        layers.is_none() || count == layers
    })
}

/// Refuses values of keys that change the tensors and are not simulated.
fn refuse_others(s: &Section, weights: ChosenWeights) -> Result<(), ModelError> {
    s.only(
        "output_router_logits",
        "false: the loss that balances experts is not simulated",
        |v| v.as_bool() == Some(false),
    )?;
    // A family whose own block has the router reads its noise itself.
    if !matches!(weights, ChosenWeights::OfBlock | ChosenWeights::OfBlockInTurn) {
        s.only(
            "router_jitter_noise",
            "0: noise on the router's input is not simulated",
            |v| v.as_f64() == Some(0.0),
        )?;
    }
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
        ChosenWeights::MaybeGrouped => RouterKind::MaybeGrouped {
            groups: some_groups(s, experts)?,
            is_normalised: s.flag("norm_topk_prob", true)?,
        },
        ChosenWeights::ByMethod => RouterKind::Scaled(limits_of_method(s, experts)?),
        ChosenWeights::Corrected => RouterKind::Corrected,
        ChosenWeights::OfChosen => RouterKind::OfChosen,
        ChosenWeights::OfChosenInF32 => RouterKind::OfChosenInF32,
        ChosenWeights::Selected => {
            let key = "expert_selection_fn";
            s.only(key, "\"softmax\" or \"sigmoid\"", |v| v == "softmax" || v == "sigmoid")?;
            match s.optional_text(key)? {
                Some("sigmoid") => RouterKind::SigmoidsOfChosen {
                    is_normalised: s.flag("norm_topk_prob", true)?,
                },
                _ => RouterKind::SoftmaxOfChosen,
            }
        }
        ChosenWeights::NormalisedProduct => RouterKind::NormalisedProduct,
        ChosenWeights::Sigmoids(form) => RouterKind::Sigmoids(form),
        ChosenWeights::OfBlock | ChosenWeights::OfBlockInTurn => RouterKind::OfBlock,
        ChosenWeights::Grouped(keys) => grouped(s, keys, ["n_routed_experts", "n_group", "norm_topk_prob"], experts)?,
        ChosenWeights::GroupedAs(keys, names) => grouped(s, keys, names, experts)?,
    })
}

/// Reads a choice among groups, by the names of the keys of how many experts there are, how many groups, and whether weights
/// are divided by their sum.
fn grouped(
    s: &Section,
    keys: GroupKeys,
    [all, number, normalised]: [&str; 3],
    experts: u64,
) -> Result<RouterKind, ModelError> {
    let groups = s.size_or(number, keys.groups, experts)?;
    let of_group = s.divide((all, experts), (number, groups))?;
    if of_group < 2 {
        return Err(s.wrong(number, &groups.into(), "groups of two experts or more"));
    }
    Ok(RouterKind::Grouped {
        groups,
        kept: s.size_or("topk_group", keys.kept, groups)?,
        // Null is false.
        is_normalised: s.flag(normalised, keys.is_normalised && !s.has(normalised))?,
        scores: keys.scores,
    })
}

/// Reads how many groups of how many experts are chosen among, if there are groups.
fn some_groups(s: &Section, experts: u64) -> Result<Option<[u64; 2]>, ModelError> {
    let Some(groups) = s.optional_size("n_group", experts)? else {
        s.only("topk_group", "null without n_group", |v| v.is_null())?;
        return Ok(None);
    };
    s.required("topk_group", "a number beside n_group")?;
    if s.divide(("n_routed_experts", experts), ("n_group", groups))? < 2 {
        return Err(s.wrong("n_group", &groups.into(), "groups of two experts or more"));
    }
    Ok(Some([s.size_or("topk_group", 1, groups)?, groups]))
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
        SharedKeys::Combined(name, default) => {
            let count = s.size_or(name, default, limits::COUNT)?;
            let wide = s.flag("enable_moe_fp32_combine", true)?;
            let how = if wide { Combination::SumInF32 } else { Combination::Sum };
            Some((SharedKind::Last(how), count * intermediate))
        }
        SharedKeys::Averaged(name) => {
            let count = s.optional_count(name, limits::COUNT)?.unwrap_or(0);
            let key = "shared_expert_combination_strategy";
            s.only(key, "\"average\" or \"sum\"", |v| v == "average" || v == "sum")?;
            let how = match s.optional_text(key)? {
                Some("sum") => Combination::Sum,
                _ => Combination::Average,
            };
            (count > 0).then_some((SharedKind::Last(how), count * intermediate))
        }
        SharedKeys::Beside => Some((SharedKind::Beside, intermediate)),
        SharedKeys::Outside(name) => {
            let width = s.optional_count(name, limits::WIDTH * 4)?.unwrap_or(0);
            (width > 0).then_some((SharedKind::Outside, width))
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
        DenseLayers::FirstOf(key, default) => {
            let first = count(key, default)?;
            (0..layers).map(|i| i >= first).collect()
        }
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
