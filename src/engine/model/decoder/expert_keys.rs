//! Mixtures of experts in place of a decoder's MLP: keys of the families, and rules that differ between them.

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
    /// Keys of layers with an MLP.
    pub of_dense: OfDense,
}

/// Keys of layers with an MLP in a family whose other layers have experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfDense {
    /// None but those of all MLPs.
    Usual,
    /// The width of their MLP under one key, if it is given; and a pattern under another, which is 1 unless given: while
    /// it is 1, such layers rotate queries and keys whatever they see (Cohere 2 MoE).
    Prefix([&'static str; 2]),
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
    /// Scores of experts that are chosen among the best groups of them (DeepSeek).
    Grouped(GroupKeys),
    /// Experts chosen as `Grouped` has them, where other keys stand for `n_routed_experts`, `n_group` and `norm_topk_prob`
    /// (Kimi Linear).
    GroupedAs(GroupKeys, [&'static str; 3]),
    /// The same with sigmoids that are corrected in fp32, and chosen among all unless there are groups (A.X-K2).
    MaybeGrouped,
    /// Softmax in fp32 times a number, chosen as `topk_method` says (DeepSeek-V2).
    ByMethod,
    /// Softmax in fp32, chosen with a correction (ERNIE 4.5).
    Corrected,
    /// Softmax of the chosen logits, which have biases (gpt-oss).
    OfChosen,
    /// Softmax of the chosen logits in fp32 (Granite MoE).
    OfChosenInF32,
    /// Softmax of the chosen logits, or sigmoids that are divided by their sum or not, as `expert_selection_fn` says
    /// (Cohere 2 MoE).
    Selected,
    /// Softmax of logits of a product in fp32, always divided by their sum (HunYuan MoE).
    NormalisedProduct,
    /// Sigmoids in fp32, chosen with a correction (MiniMax-M2).
    Sigmoids(SigmoidForm),
    /// Those of a router that the family's own block has (AFMoE).
    OfBlock,
    /// Those of a router that the family's own block has, before experts that are multiplied one after the other, as rows
    /// of any width can be (Aria).
    OfBlockInTurn,
}

/// Weights of experts that are sigmoids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SigmoidForm {
    /// True if the logits are a product in fp32.
    pub wide: bool,
    /// True if the weights are divided by their sum in place, and not multiplied by a number after it.
    pub in_place: bool,
    /// True if the router holds the correction of the choice, false if the block around it does.
    pub corrects: bool,
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
    /// Scores that experts are chosen by.
    pub scores: GroupScores,
}

/// Scores that experts are chosen by among groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupScores {
    /// Sigmoids in fp32, with a correction in the model's type (DeepSeek-V3).
    Sigmoids,
    /// The same, with a correction in fp32 whatever the model's type (GLM-4.5).
    SigmoidsCorrectedInF32,
    /// Softmax of the logits in their own type, without a correction (Mistral 4).
    Softmax,
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
    /// The first of this key's number, with this default (AFMoE).
    FirstOf(&'static str, u64),
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
    /// One as wide as this key's number of experts, with a default number; it runs last, and is added in fp32 if
    /// `enable_moe_fp32_combine` (HY-3).
    Combined(&'static str, u64),
    /// One as wide as this key's number of experts, or none; it runs last, and `shared_expert_combination_strategy` says if
    /// the sum or its half is taken (Cohere 2 MoE).
    Averaged(&'static str),
    /// `shared_mlp`, as wide as the experts, which runs first and is added last (HunYuan MoE).
    Beside,
    /// One beside the experts' module, with both projections in one, and the key of its elements; 0 is none (Granite MoE).
    Outside(&'static str),
}
