//! Form and sizes of the encoders.

use crate::model::config::Activation;

/// Form of a family's encoder and head.
#[derive(Debug, PartialEq)]
pub struct BertForm {
    /// Name of the encoder within the model.
    pub path: &'static str,
    /// Source of positions.
    pub positions: PositionForm,
    /// Source of token types; `None` if the family has none.
    pub types: Option<TypeForm>,
    /// Place of the norms.
    pub norms: NormPlace,
    /// Attention.
    pub attention: AttentionForm,
    /// True if positions are added to the embeddings in place.
    pub positions_in_place: bool,
    /// True if the norm of the embeddings comes after their dropout (BigBird).
    pub dropout_first: bool,
    /// Place where embeddings are projected to the width of the blocks.
    pub projection: Projection,
    /// Modules of the head.
    pub head: HeadModule,
    /// True if the head is made before the encoder, and comes first among the parameters.
    pub head_first: bool,
    /// True if the encoder ends with a pooler, whose output no language model reads (BigBird).
    pub pools: bool,
}

/// Code of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionForm {
    /// That of the setup.
    Chosen,
    /// Eager, as older code of transformers is; tokens then see all others, even of a decoder.
    Eager,
    /// Eager, and blocks return its weights.
    EagerWithWeights,
}

/// Source of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionForm {
    /// A table of all positions.
    Table,
    /// A running count of the tokens that are not padding (RoBERTa).
    Counted,
    /// A frozen table of sinusoids that rotate queries and keys (RoFormer).
    Rotary,
}

/// Source of token types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeForm {
    /// Gathered from a table of zeros.
    Gathered,
    /// The first of a table of zeros (BigBird).
    Sliced,
    /// Zeros.
    Zeros,
}

/// Place of the norms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormPlace {
    /// After each residual connection.
    After,
    /// Before each part, one of them within the part itself, and at the end (RoBERTa-PreLayerNorm).
    Before,
    /// Before each part and at the end of the encoder, not of the embeddings (Megatron-BERT).
    Megatron,
    /// Before each part and at the end of the encoder; the norm before the MLP is made last and lives no longer than the
    /// MLP's first half (XLM-RoBERTa-XL).
    Xl,
    /// Before each part, of the module after it, and at the end (X-MOD).
    OfOutputs,
}

impl NormPlace {
    /// Name of the norm before attention.
    pub fn before_attention(self) -> &'static str {
        match self {
            Self::After | Self::Before | Self::OfOutputs => "LayerNorm",
            Self::Megatron => "ln",
            Self::Xl => "self_attn_layer_norm",
        }
    }

    /// Name of the norm before the MLP, and of that at the end.
    pub fn before_mlp(self) -> &'static str {
        match self {
            Self::After | Self::Before | Self::Xl | Self::OfOutputs => "LayerNorm",
            Self::Megatron => "ln",
        }
    }

    /// True if the encoder ends with a norm, and embeddings have none.
    pub fn ends_encoder(self) -> bool {
        matches!(self, Self::Megatron | Self::Xl)
    }

    /// True if the encoder's own module has the norm at the end.
    pub fn is_last_of_encoder(self) -> bool {
        self.ends_encoder() || self == Self::OfOutputs
    }
}

/// Place where embeddings are projected to the width of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projection {
    /// In `embeddings_project`, if their width differs.
    IfNeeded,
    /// In the encoder, always (RemBERT).
    InEncoder,
}

/// Modules of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadModule {
    /// `cls.predictions`: a linear layer, the encoder's activation, a norm, the output projection.
    Predictions,
    /// `lm_head`: the same with GELU.
    LmHead,
    /// `generator_predictions` and `generator_lm_head`: the same, down to the width of the embeddings.
    Generator,
    /// `lm_head`: the output projection.
    Projection,
    /// `cls.predictions`: as `lm_head`, with a width of its own before the output projection (RemBERT).
    Widened,
}

/// An encoder like BERT's with the head of a language model.
#[derive(Debug, Clone, PartialEq)]
pub struct BertConfig {
    /// Form of the family.
    pub form: &'static BertForm,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the embeddings; projected if it differs from `hidden`.
    pub embedding: u64,
    /// Width before the output projection.
    pub output_embedding: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Entries of the position embedding.
    pub positions: u64,
    /// Positions that padding takes before the first token.
    pub first_position: u64,
    /// Token types; none if the family has none.
    pub types: u64,
    /// Task types, if they are embedded.
    pub tasks: Option<u64>,
    /// Tables of how characters sound and look, if there are any.
    pub characters: Option<CharactersConfig>,
    /// Adapters of languages behind each MLP, if there are any.
    pub adapters: Option<AdaptersConfig>,
    /// True if the embeddings of tokens are scaled by a number (BigBird).
    pub scales_embeddings: bool,
    /// True if the projections of attention have biases.
    pub attention_bias: bool,
    /// True if values are rotated too, where queries and keys are (RoFormer).
    pub rotates_values: bool,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub hidden_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// The most tokens that all see each other; `None` if all texts do (BigBird).
    pub blocks_beyond: Option<u64>,
    /// True if tokens see only those before them.
    pub is_decoder: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

/// Tables beside that of the tokens: how their characters sound, and how they look (RoCBERT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CharactersConfig {
    /// Entries and width of the sounds.
    pub sounds: [u64; 2],
    /// Entries and width of the looks.
    pub looks: [u64; 2],
    /// True if sounds are read.
    pub reads_sounds: bool,
    /// True if looks are read.
    pub reads_looks: bool,
    /// True if all are joined and mapped to the width of the blocks; otherwise nothing but tokens is embedded, since
    /// batches of text have no ids of the others.
    pub joined: bool,
}

/// Adapters of languages behind each MLP (X-MOD). All samples are of one language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptersConfig {
    /// Languages.
    pub languages: u64,
    /// Number of the language of all samples.
    pub of_samples: u64,
    /// Width inside an adapter.
    pub width: u64,
    /// True if they have a norm of their own before them.
    pub normed: bool,
    /// True if the norm of the MLP comes before them, unless they have one of their own.
    pub reuses_norm: bool,
    /// True if what passes around them is normed.
    pub passes_normed: bool,
}
