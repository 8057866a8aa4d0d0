//! Gemma 4's language models (`transformers/models/gemma4/modeling_gemma4.py`).

use std::rc::Rc;

use super::config::Gemma4TextConfig;
use super::layer::{Layer, LayerContext, SharedStates};
use crate::model::decoder::head::{Logits, formed_last_logits, formed_logits_and_loss, head_for};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder, Linear, Numbered, Pattern, PowerRmsNorm, Rotary, ScaledEmbedding};
use crate::tape::{Component, Mask, Tape, Tensor};

/// `Gemma4ForCausalLM`, `Gemma4UnifiedForCausalLM`.
pub struct Gemma4Lm {
    model: Gemma4Text,
    lm_head: Linear,
    caps_logits: bool,
}

/// `Gemma4TextModel`, `Gemma4UnifiedTextModel`.
pub struct Gemma4Text {
    embed_tokens: ScaledEmbedding,
    layers: Vec<Numbered<Layer>>,
    norm: PowerRmsNorm,
    /// Of full, then of sliding layers.
    rotary: [Option<Rotary>; 2],
    per_layer: Option<PerLayerTables>,
    slides: Vec<bool>,
    window: u64,
    /// Positions that each layer's cache keeps, of layers that make keys and values.
    cached: Vec<Option<u64>>,
}

/// Inputs that the caller prepares; the model makes the absent ones.
#[derive(Default)]
pub struct Given {
    /// Inputs of layers by token, [batch, seq, layers, width].
    pub looked_up: Option<Tensor>,
    /// Positions of samples that are packed into one row, [1, seq].
    pub packed: Option<Tensor>,
    pub position_ids: Option<Tensor>,
    /// Of full, then of sliding layers.
    pub masks: Option<[Option<Mask>; 2]>,
}

/// Modules that make the inputs of single layers.
struct PerLayerTables {
    embed_tokens_per_layer: ScaledEmbedding,
    per_layer_model_projection: Linear,
    per_layer_projection_norm: PowerRmsNorm,
    width: u64,
}

impl Gemma4Lm {
    pub fn new(b: &Builder, c: &Gemma4TextConfig) -> Self {
        let model = b
            .tape()
            .component("model", Component::LanguageModel, || Gemma4Text::new(b, c));
        let lm_head = head_for(b, model.weight(), c.tie_word_embeddings);
        Self {
            model,
            lm_head,
            caps_logits: c.caps_logits,
        }
    }
}

impl Forward for Gemma4Lm {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model", Component::LanguageModel, || {
            self.model.forward_ids(t, run, ids, batch.positions.clone())
        });
        formed_logits_and_loss(t, &self.lm_head, h, batch, Logits::capped(self.caps_logits))
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let h = self.model.forward_ids(t, run, ids, None);
        Some(formed_last_logits(
            t,
            &self.lm_head,
            &h,
            Logits::capped(self.caps_logits),
        ))
    }
}

impl Gemma4Text {
    pub fn new(b: &Builder, c: &Gemma4TextConfig) -> Self {
        let t = b.tape();
        let embed_tokens = ScaledEmbedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let layers = (0..c.slides.len()).map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, i))));
        let layers = layers.collect();
        let norm = PowerRmsNorm::new(b, "norm", c.hidden);
        let rotary = [false, true].map(|slides| {
            let heads = c.kinds[usize::from(slides)];
            let used = c.slides.contains(&slides);
            used.then(|| Rotary::with(b, heads.width, heads.frequencies))
        });
        let per_layer = c.per_layer.map(|inputs| {
            let all = c.slides.len() as u64 * inputs.width;
            PerLayerTables {
                embed_tokens_per_layer: ScaledEmbedding::new(b, "embed_tokens_per_layer", inputs.vocab, all),
                per_layer_model_projection: Linear::new(b, "per_layer_model_projection", c.hidden, all, false),
                per_layer_projection_norm: PowerRmsNorm::new(b, "per_layer_projection_norm", inputs.width),
                width: inputs.width,
            }
        });
        Self {
            embed_tokens,
            layers,
            norm,
            rotary: rotary.map(|rotary| rotary.map(|rotary| rotary.initialised(t))),
            per_layer,
            window: c.window,
            cached: c.slides[..c.own_layers()]
                .iter()
                .map(|slides| slides.then_some(c.window))
                .collect(),
            slides: c.slides.clone(),
        }
    }

    /// Token ids [batch, seq] → last hidden states [batch, seq, hidden]; `packed` are the positions of samples that are
    /// packed into one row.
    pub fn forward_ids(&self, t: &Tape, run: &Run, ids: &Tensor, packed: Option<Tensor>) -> Tensor {
        let embeds = self.embed(t, run, ids);
        let given = Given {
            looked_up: self.look_up_inputs(t, ids),
            packed,
            ..Given::default()
        };
        self.forward(t, run, embeds, given)
    }

    /// The token embedding's table, for a head that shares it.
    pub fn weight(&self) -> &Tensor {
        self.embed_tokens.weight()
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    /// `get_per_layer_inputs`: [batch, seq, layers, width]; `None` if layers have no inputs of their own.
    pub fn look_up_inputs(&self, t: &Tape, ids: &Tensor) -> Option<Tensor> {
        let tables = self.per_layer.as_ref()?;
        Some(tables.look_up(t, ids))
    }

    /// Masks of full, then of sliding layers; with `blocks`, the tokens of an image see each other both ways.
    pub const fn patterns<'a>(&self, blocks: Option<&'a Tensor>) -> [Pattern<'a>; 2] {
        match blocks {
            Some(blocks) => [Pattern::Blocks(blocks), Pattern::SlidingOrBlocks(blocks)],
            None => [Pattern::Causal, Pattern::Sliding(self.window)],
        }
    }

    /// Returns true if layers have inputs of their own.
    pub const fn has_inputs(&self) -> bool {
        self.per_layer.is_some()
    }

    /// Returns true if some layer slides.
    pub fn any_slides(&self) -> bool {
        self.slides.contains(&true)
    }

    /// Embeddings [batch, seq, hidden] and inputs of layers → last hidden states [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, run: &Run, embeds: Tensor, given: Given) -> Tensor {
        let inputs = match (&self.per_layer, given.looked_up) {
            (Some(tables), Some(looked_up)) => Some(tables.project(t, &embeds, looked_up)),
            _ => None,
        };
        let cache = run.cache(&self.cached);
        let packed = given.packed.as_ref();
        let position_ids = given
            .position_ids
            .or_else(|| packed.cloned())
            .unwrap_or_else(|| run.position_ids(t, &embeds));
        let masks = given.masks.unwrap_or_else(|| {
            self.patterns(None)
                .map(|pattern| nn::text_mask(t, run.attn, &embeds, packed, pattern))
        });
        let states = SharedStates::default();
        let tables = self.rotary.each_ref().map(|rotary| {
            let rotary = rotary.as_ref()?;
            Some(rotary.call(t, &embeds, &position_ids))
        });
        let contexts = [0, 1].map(|kind| {
            let (cos, sin) = tables[kind].clone()?;
            Some(Rc::new(LayerContext {
                attn: run.attn,
                mask: masks[kind].clone(),
                cos,
                sin,
                cache: cache.clone(),
                shared: states.clone(),
                _position_ids: position_ids.clone(),
            }))
        });
        let mut h = embeds.clone();
        for (i, layer) in self.layers.iter().enumerate() {
            let Some(context) = contexts[usize::from(self.slides[i])].clone() else {
                unreachable!("every kind of layer has its rotary embedding")
            };
            let own_input = inputs.as_ref().map(|inputs| t.select(inputs, 2));
            let block = layer.clone();
            h = match own_input {
                Some(own) => {
                    let forward = move |t: &Tape, x: Tensor, own: &Tensor| block.forward(t, &context, x, Some(own));
                    run.block_with(t, layer, (h, own), forward)
                }
                None => run.block(t, layer, h, move |t, x| block.forward(t, &context, x, None)),
            };
        }
        let out = self.norm.call(t, &h);
        drop((embeds, inputs));
        out
    }
}

impl PerLayerTables {
    fn split(&self, t: &Tape, x: &Tensor) -> Tensor {
        t.reshape(x, [x.size(0), x.size(1), x.last() / self.width, self.width])
    }

    /// `get_per_layer_inputs`: [batch, seq, layers, width].
    fn look_up(&self, t: &Tape, ids: &Tensor) -> Tensor {
        self.embed_tokens_per_layer
            .call_hooked(t, ids, |all| self.split(t, &all))
    }

    /// `project_per_layer_inputs`: [batch, seq, layers, width].
    fn project(&self, t: &Tape, embeds: &Tensor, looked_up: Tensor) -> Tensor {
        let mut projected = {
            let projected = self.per_layer_model_projection.call(t, embeds);
            t.scale(&projected)
        };
        projected = self.split(t, &projected);
        projected = self.per_layer_projection_norm.call(t, &projected);
        let sum = t.add(&projected, &looked_up);
        let out = t.scale(&sum);
        drop((sum, projected, looked_up));
        out
    }
}
