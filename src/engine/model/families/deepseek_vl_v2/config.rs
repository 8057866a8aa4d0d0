//! Configuration of DeepSeek-VL2.

use serde_json::Value;

use super::tiles;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid, limits};
use crate::setup::Setup;

/// DeepSeek-VL2: SigLIP's tower over tiles, a projector that joins squares of patches, DeepSeek-V2's decoder with attention of
/// its own kind or Llama's.
///
/// Source: `deepseek_vl2/models` of deepseek-ai/DeepSeek-VL2, whose classes a run imports.
#[derive(Debug, Clone, PartialEq)]
pub struct DeepseekVlV2Config {
    /// The vision tower.
    pub vision: TowerConfig,
    /// The projector.
    pub projector: ProjectorConfig,
    /// The language model.
    pub text: LanguageConfig,
    /// Widths and heights of pixels to which an image may be fitted, whole tiles each.
    pub candidates: Vec<[u64; 2]>,
}

/// `VisionTransformer` of `siglip_vit.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct TowerConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Image and patch sizes of a tile.
    pub grid: PatchGrid,
    /// True if it has an attention-pooling head, which is never run.
    pub has_pool: bool,
}

/// `MlpProjector` with `downsample_mlp_gelu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectorConfig {
    /// Elements of a patch's feature.
    pub input: u64,
    /// Elements of a token.
    pub output: u64,
    /// Linear layers.
    pub depth: u64,
    /// Width between the linear layers, in widths of a token.
    pub ratio: u64,
    /// Patches along each side of the square that becomes one token.
    pub square: u64,
}

/// `DeepseekV2ForCausalLM` of `modeling_deepseek.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct LanguageConfig {
    /// Tokens of the vocabulary.
    pub vocab: u64,
    /// Hidden width.
    pub hidden: u64,
    /// Width of an MLP.
    pub intermediate: u64,
    /// Layers.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Most positions.
    pub max_positions: u64,
    /// Activation of an MLP.
    pub activation: Activation,
    /// Attention.
    pub attention: AttentionConfig,
    /// True if projections of attention have biases.
    pub attention_bias: bool,
    /// Dropout of attention's weights.
    pub attention_dropout: f64,
    /// Experts, and the layers that have them.
    pub experts: Option<ExpertsConfig>,
}

/// Attention of the language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionConfig {
    /// Llama's (`use_mla: false`); heads of keys and values.
    Llama(u64),
    /// Latent, whose projections from the latent are taken into those of queries and outputs.
    Latent {
        /// Elements of the queries' latent, if they have one.
        q_rank: Option<u64>,
        /// Elements of the latent of keys and values.
        kv_rank: u64,
        /// Elements of a head without positions.
        nope_dim: u64,
        /// Elements of a head that RoPE rotates.
        rope_dim: u64,
        /// Elements of a value's head.
        values: u64,
    },
}

/// Experts of the language model.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpertsConfig {
    /// Experts of a layer.
    pub count: u64,
    /// Experts that a token passes.
    pub chosen: u64,
    /// Width of an expert.
    pub intermediate: u64,
    /// Width of the experts that all tokens pass, if there are some.
    pub shared: Option<u64>,
    /// True if the loss that balances experts is made.
    pub balances: bool,
    /// True if weights of the chosen are divided by their sum.
    pub normalises: bool,
    /// True for each layer with experts.
    pub sparse: Vec<bool>,
}

impl DeepseekVlV2Config {
    /// Tiles of each image of a sample, across and down: images of the sizes given, square ones of the side given, or else images
    /// that take the most tokens.
    pub fn fitted(&self, setup: &Setup) -> Vec<[u64; 2]> {
        let side = self.vision.grid.image;
        let given = setup.image_sizes.len().max(1).max(setup.images as usize);
        let count = if setup.image_sizes.is_empty() {
            given
        } else {
            setup.image_sizes.len()
        };
        // `cropping=len(images) <= 2`.
        if count > tiles::MOST_CUT {
            return vec![[1, 1]; count];
        }
        let fit = |size: [u64; 2]| tiles::fitted(size, &self.candidates).map(|pixels| pixels / side);
        if !setup.image_sizes.is_empty() {
            return setup.image_sizes.iter().copied().map(fit).collect();
        }
        let of_side = setup.image.map(|n| fit([n.max(1); 2]));
        let tiles = of_side.unwrap_or_else(|| {
            let all = self.candidates.iter().map(|pixels| pixels.map(|n| n / side));
            all.max_by_key(|tiles| self.tokens_of(*tiles)).unwrap_or([1, 1])
        });
        vec![tiles; count]
    }

    /// Tokens along a side of a tile.
    pub fn tile_side(&self) -> u64 {
        self.vision.grid.side().div_ceil(self.projector.square)
    }

    /// Tokens of an image of tiles across and down: those of the whole image and those of its tiles, with one at the end of
    /// each row, and one between both.
    pub fn tokens_of(&self, [across, down]: [u64; 2]) -> u64 {
        let n = self.tile_side();
        n * (n + 1) + 1 + down * n * (across * n + 1)
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let vision = TowerConfig::read(&s.nested("vision_config", "DeepSeek-VL2 vision")?)?;
        let projector = ProjectorConfig::read(&s.nested_or_empty("projector_config", "DeepSeek-VL2 projector")?)?;
        let text = LanguageConfig::read(&s.nested("language_config", "DeepSeek-V2")?)?;
        s.equal(
            ("projector_config.input_dim", projector.input),
            ("vision_config.width", vision.shape.hidden),
        )?;
        s.equal(
            ("projector_config.n_embed", projector.output),
            ("language_config.hidden_size", text.hidden),
        )?;
        // The class's default for an absent key is refused by the class itself.
        s.required("tile_tag", "2D, the only layout of tiles that its code makes")?;
        s.only("tile_tag", "2D, the only layout of tiles that its code makes", |tag| {
            tag == "2D"
        })?;
        s.only("global_view_pos", "head or tail", |place| {
            place == "head" || place == "tail"
        })?;
        let candidates = candidates(s, vision.grid.image)?;
        Ok(Self {
            vision,
            projector,
            text,
            candidates,
        })
    }
}

/// Reads the resolutions to which an image may be fitted, multiples of a tile of `side` pixels.
fn candidates(s: &Section, side: u64) -> Result<Vec<[u64; 2]>, ModelError> {
    let key = "candidate_resolutions";
    let Some(value) = s.value(key) else {
        return Ok(vec![[side; 2]]);
    };
    let pair = |value: &Value| {
        let [a, b] = value.as_array()?.as_slice() else {
            return None;
        };
        let whole = |v: &Value| {
            v.as_u64()
                .filter(|n| (side..=limits::PIXELS).contains(n) && n % side == 0)
        };
        Some([whole(a)?, whole(b)?])
    };
    let list: Option<Vec<_>> = value.as_array().and_then(|list| list.iter().map(pair).collect());
    // The processor takes its tiles to be as large as the first.
    list.filter(|list| list.first() == Some(&[side; 2])).ok_or_else(|| {
        let wanted =
            format!("a list of [width, height] in multiples of the tower's {side} pixels, [{side}, {side}] first");
        s.wrong(key, value, &wanted)
    })
}

impl TowerConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        s.expect_model_type(&["vision"])?;
        // DeepSeek-OCR has this type too, and two other towers.
        s.only(
            "model_name",
            "a SigLIP tower, such as siglip_so400m_patch14_384",
            |name| name.as_str().is_some_and(|name| name.starts_with("siglip")),
        )?;
        for key in ["class_token", "use_checkpoint"] {
            s.only(key, "false", |given| given == false)?;
        }
        s.only("ignore_head", "true: the pooling head is not simulated", |given| {
            given == true
        })?;
        s.only("global_pool", "map, avg or none", |pool| pool == "map" || pool == "")?;
        let hidden = s.size_of_class("width", 1024, limits::WIDTH)?;
        let heads = s.size_of_class("heads", 16, limits::HEADS)?;
        s.divide(("width", hidden), ("heads", heads))?;
        let ratio = s.optional_number("mlp_ratio")?.unwrap_or(4.0);
        let intermediate = (hidden as f64 * ratio) as u64;
        if !(1..=limits::WIDTH * 4).contains(&intermediate) {
            return Err(s.wrong("mlp_ratio", &ratio.into(), "an MLP of one element or more"));
        }
        Ok(Self {
            shape: EncoderShape {
                hidden,
                intermediate,
                layers: s.size_of_class("layers", 24, limits::LAYERS)?,
                heads,
            },
            grid: PatchGrid {
                image: s.size_of_class("image_size", 384, limits::PIXELS)?,
                patch: s.size_of_class("patch_size", 16, limits::PIXELS)?,
                channels: 3,
            },
            has_pool: s.optional_text("global_pool")?.unwrap_or("map") == "map",
        })
    }
}

impl ProjectorConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        s.expect_model_type(&["mlp_projector"])?;
        s.only("projector_type", "downsample_mlp_gelu", |kind| {
            kind == "downsample_mlp_gelu"
        })?;
        s.only("token_pooling", "false", |given| given == false)?;
        let depth = s.size_or("depth", 2, limits::COUNT)?;
        if depth < 2 {
            return Err(s.wrong("depth", &depth.into(), "two linear maps or more, as its code makes"));
        }
        Ok(Self {
            input: s.size_of_class("input_dim", 1152, limits::WIDTH)?,
            output: s.size_of_class("n_embed", 2048, limits::WIDTH)?,
            depth,
            ratio: s.size_or("mlp_ratio", 1, limits::COUNT)?,
            square: s.size_or("downsample_ratio", 2, limits::COUNT)?,
        })
    }
}

impl LanguageConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        s.expect_model_type(&["deepseek_v2"])?;
        s.only("rope_scaling", "null: scaled positions are not simulated", |_| false)?;
        s.only("ep_size", "1: each process has all experts", |n| n.as_u64() == Some(1))?;
        s.only("pretraining_tp", "1", |n| n.as_u64() == Some(1))?;
        s.only("tie_word_embeddings", "false", |given| given == false)?;
        let hidden = s.size_of_class("hidden_size", 4096, limits::WIDTH)?;
        let heads = s.size_of_class("num_attention_heads", 32, limits::HEADS)?;
        let layers = s.size_of_class("num_hidden_layers", 30, limits::LAYERS)?;
        let attention = match s.flag("use_mla", true)? {
            true => latent(s)?,
            false => {
                s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
                let shared = s.size_of_class("num_key_value_heads", heads, limits::HEADS)?;
                s.divide(("num_attention_heads", heads), ("num_key_value_heads", shared))?;
                AttentionConfig::Llama(shared)
            }
        };
        Ok(Self {
            vocab: s.size_of_class("vocab_size", 102_400, limits::VOCAB)?,
            hidden,
            intermediate: s.size_of_class("intermediate_size", 11_008, limits::WIDTH * 4)?,
            layers,
            heads,
            max_positions: s.size_or("max_position_embeddings", 2048, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            attention,
            attention_bias: s.flag("attention_bias", false)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            experts: ExpertsConfig::read(s, layers)?,
        })
    }
}

fn latent(s: &Section) -> Result<AttentionConfig, ModelError> {
    let q_rank = match s.has("q_lora_rank") {
        true => s.optional_size("q_lora_rank", limits::WIDTH)?,
        false => Some(1536),
    };
    let size = |name: &str, default: u64| s.size_of_class(name, default, limits::HEAD_DIM);
    let rope_dim = size("qk_rope_head_dim", 64)?;
    if !rope_dim.is_multiple_of(2) {
        return Err(s.wrong("qk_rope_head_dim", &rope_dim.into(), "an even number, of pairs"));
    }
    Ok(AttentionConfig::Latent {
        q_rank,
        kv_rank: s.size_of_class("kv_lora_rank", 512, limits::WIDTH)?,
        nope_dim: size("qk_nope_head_dim", 128)?,
        rope_dim,
        values: size("v_head_dim", 128)?,
    })
}

impl ExpertsConfig {
    fn read(s: &Section, layers: u64) -> Result<Option<Self>, ModelError> {
        let Some(count) = s.optional_size("n_routed_experts", limits::WIDTH)? else {
            return Ok(None);
        };
        s.only("scoring_func", "softmax or sigmoid", |f| {
            f == "softmax" || f == "sigmoid"
        })?;
        s.required("topk_method", "greedy: other choices are not simulated")?;
        // `assert not self.training` in its router stops a training step with noaux_tc.
        s.only(
            "topk_method",
            "greedy: its code trains with no other but group_limited_greedy, which is not simulated",
            |method| method == "greedy",
        )?;
        s.only(
            "seq_aux",
            "true: another balance of experts is not simulated",
            |given| given == true,
        )?;
        s.required("num_experts_per_tok", "a number of experts")?;
        let chosen = s.size_or("num_experts_per_tok", 1, count)?;
        let intermediate = s.size_of_class("moe_intermediate_size", 1407, limits::WIDTH * 4)?;
        let shared = s.optional_size("n_shared_experts", limits::COUNT)?;
        let first = s.optional_count("first_k_dense_replace", limits::LAYERS)?.unwrap_or(0);
        let step = s.size_or("moe_layer_freq", 1, limits::LAYERS)?;
        Ok(Some(Self {
            count,
            chosen,
            intermediate,
            shared: shared.map(|n| n * intermediate),
            balances: s.optional_number("aux_loss_alpha")?.unwrap_or(0.001) > 0.0,
            normalises: s.flag("norm_topk_prob", false)? && chosen > 1,
            sparse: (0..layers).map(|i| i >= first && i % step == 0).collect(),
        }))
    }
}
