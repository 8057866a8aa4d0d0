//! Forms of a decoder's block like Llama's, and of what stands around its blocks.

use crate::nn::NormKind;

/// Form of a block like Llama's, and of what stands around its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LlamaBlock {
    /// Kind of all norms, the model's last one too.
    pub norm: NormKind,
    /// Places of the block's norms.
    pub placement: NormPlacement,
    /// Place of the norms of queries and keys, if it has some.
    pub query_norms: QueryNorms,
    /// Form of the MLP.
    pub mlp: MlpKind,
    /// Rotation of queries and keys by their positions.
    pub rotation: Rotation,
    /// True if queries are then multiplied by a number that grows with their position (Ministral 3).
    pub scales_queries: bool,
    /// True if keys are multiplied by a number before RoPE rotates them (Falcon H1).
    pub scales_keys: bool,
    /// True if, beside sliding blocks, those that see all positions have no RoPE (EXAONE 4, Cohere 2).
    pub rotates_only_sliding: bool,
    /// True if embeddings, and what each part adds to the residual stream, are multiplied by a number (Granite).
    pub scales_stream: bool,
    /// True if logits are multiplied by a number.
    pub scales_logits: bool,
    /// True if the last hidden states are multiplied by a number before the head (MiniCPM3).
    pub scales_last: bool,
    /// True if what a part makes lives, beside its copy after dropout, until it is added to the residual stream (Emu3).
    pub keeps_undropped: bool,
    /// True if what enters the last projections of attention and of the MLP passes norms (BitNet).
    pub sub_norms: bool,
    /// True if a projection of its own gates what attention makes (HRM-Text).
    pub gates: bool,
}

/// Multiplication of a decoder's embeddings by a number after its masks are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateScale {
    /// None, or before the masks are made.
    Never,
    /// The product takes the embeddings' place (Granite MoE).
    Replaces,
    /// Under a switch; the embeddings live beside the product (AFMoE).
    Beside(&'static str),
}

/// Places of a block's norms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NormPlacement {
    /// Before attention, and before the MLP.
    Before,
    /// The same under other names (Apertus).
    BeforeAs([&'static str; 2]),
    /// After each (OLMo 2).
    After,
    /// Before and after each: names of those after, and the key that switches them off, if there is one.
    Around([&'static str; 2], Option<&'static str>),
    /// Before and after each, under Gemma 2's names (Muse Glimmer).
    Sandwich,
    /// One before both, which run side by side (Cohere).
    Shared,
}

/// Norms of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryNorms {
    /// Of each head, before heads and positions change places (Qwen3).
    Heads,
    /// Of each head, once all three projections are split (EXAONE 4).
    SplitHeads,
    /// Of each head, after RoPE, by these names (HunYuan).
    TurnedHeads([&'static str; 2]),
    /// Of the whole projection, once all three are made (OLMo 2; OLMo has the order without the norms).
    Whole,
}

/// Forms of an MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MlpKind {
    /// A projection, another that gates it, and one back.
    Gated,
    /// Both projections in one (GLM).
    Fused,
    /// A projection and one back, of these names (Arcee).
    Plain([&'static str; 2]),
}

/// Rotation of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// Of whole heads, in their own type.
    Whole,
    /// Of whole heads, in their own type, the other way round (nanochat).
    Back,
    /// Of whole heads by cosines in fp32, and back to their own type (OLMo 2).
    ByF32,
    /// Of whole heads in fp32, and back to their own type (Cohere).
    InF32,
    /// Of a part of each head: queries and keys are both rotated before either is concatenated with its rest (Nemotron).
    Part,
    /// Of a part of each head, which is freed once it is concatenated with the rest (GLM-4-MoE).
    FreedPart,
    /// Of a part of each head, whose alternating elements make pairs (GLM).
    AlternatingPart,
    /// Of a part of each head, whose alternating elements make pairs, by cosines for each element of a pair (GLM-OCR).
    PairedPart,
    /// Of whole heads, whose halves are rotated one by one by cosines of half a head (gpt-oss).
    Halves,
    /// Of whole heads in fp32, whose alternating elements make pairs, by cosines in fp32 (ERNIE 4.5 MoE).
    AlternatingInF32,
    /// The same by cosines for each element of a pair (ERNIE 4.5 VL).
    PairedInF32,
}
