//! Gemma 3n's language model (`transformers/models/gemma3n/modeling_gemma3n.py`).

use std::rc::Rc;

use super::config::Gemma3nTextConfig;
use super::layer::Layer;
use crate::dtype::DType;
use crate::model::decoder::head::{Logits, formed_last_logits, formed_logits_and_loss, head_for};
use crate::model::families::gemma4_text::{LayerContext, SharedStates};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder, Linear, Numbered, Pattern, PowerRmsNorm, Rotary, ScaledEmbedding};
use crate::tape::{Component, Tape, Tensor};

/// `Gemma3nForCausalLM`.
pub struct Gemma3nLm {
    model: Gemma3nText,
    lm_head: Linear,
}

/// `Gemma3nTextModel`.
struct Gemma3nText {
    embed_tokens: ScaledEmbedding,
    layers: Vec<Numbered<Layer>>,
    norm: PowerRmsNorm,
    /// Of full, then of sliding layers.
    rotary: [Option<Rotary>; 2],
    embed_tokens_per_layer: ScaledEmbedding,
    per_layer_model_projection: Linear,
    per_layer_projection_norm: PowerRmsNorm,
    altup_projections: Vec<Linear>,
    altup_unembed_projections: Vec<Linear>,
    per_layer_projection_scale: Tensor,
    per_layer_input_scale: Tensor,
    input_width: u64,
    slides: Vec<bool>,
    window: u64,
    /// Positions that each layer's cache keeps, of layers that it is made for.
    cached: Vec<Option<u64>>,
}

/// Variables of the model's forward, which hold what the last turn of its loop over hidden states made.
#[derive(Default)]
struct Locals {
    target_magnitude: Option<Tensor>,
    projected: Option<Tensor>,
    state: Option<Tensor>,
    magnitude: Option<Tensor>,
}

impl Gemma3nLm {
    pub fn new(b: &Builder, c: &Gemma3nTextConfig) -> Self {
        let make = || Gemma3nText::new(b, c);
        let model = b.tape().component("model", Component::LanguageModel, make);
        let lm_head = head_for(b, model.embed_tokens.weight(), c.tie_word_embeddings);
        Self { model, lm_head }
    }
}

impl Forward for Gemma3nLm {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model", Component::LanguageModel, || {
            self.model.forward(t, run, ids, batch.positions.clone())
        });
        formed_logits_and_loss(t, &self.lm_head, h, batch, Logits::Capped)
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let h = self.model.forward(t, run, ids, None);
        Some(formed_last_logits(t, &self.lm_head, &h, Logits::Capped))
    }
}

impl Gemma3nText {
    fn new(b: &Builder, c: &Gemma3nTextConfig) -> Self {
        let t = b.tape();
        let embed_tokens = ScaledEmbedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let layer = |i: usize| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, i)));
        let layers = (0..c.slides.len()).map(layer).collect();
        let norm = PowerRmsNorm::new(b, "norm", c.hidden);
        let rotary = [false, true].map(|slides| c.slides.contains(&slides).then(|| Rotary::new(b, c.head_dim)));
        let all = c.slides.len() as u64 * c.input_width;
        let list = |name| {
            let linear = |i| t.layer(name, i, || Linear::of_list(b, c.hidden, c.hidden));
            (0..c.streams as usize - 1).map(linear).collect()
        };
        let own = match c.shared_layers as usize {
            0 => c.slides.len(),
            shared => c.slides.len().saturating_sub(shared),
        };
        Self {
            embed_tokens,
            layers,
            norm,
            embed_tokens_per_layer: ScaledEmbedding::new(b, "embed_tokens_per_layer", c.input_vocab, all),
            per_layer_model_projection: Linear::new(b, "per_layer_model_projection", c.hidden, all, false),
            per_layer_projection_norm: PowerRmsNorm::new(b, "per_layer_projection_norm", c.input_width),
            altup_projections: list("altup_projections"),
            altup_unembed_projections: list("altup_unembed_projections"),
            per_layer_projection_scale: b.buffer("per_layer_projection_scale", [], b.dtype()),
            per_layer_input_scale: b.buffer("per_layer_input_scale", [], b.dtype()),
            rotary: rotary.map(|rotary| rotary.map(|rotary| rotary.initialised(t))),
            input_width: c.input_width,
            slides: c.slides.clone(),
            window: c.window,
            cached: c.slides[..own]
                .iter()
                .map(|slides| slides.then_some(c.window))
                .collect(),
        }
    }

    /// Token ids [batch, seq] → last hidden states [batch, seq, hidden]; `packed` are the positions of samples that are
    /// packed into one row.
    fn forward(&self, t: &Tape, run: &Run, ids: &Tensor, packed: Option<Tensor>) -> Tensor {
        let embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let inputs = self.inputs(t, &embeds, ids);
        let cache = run.cache(&self.cached);
        let position_ids = packed.clone().unwrap_or_else(|| run.position_ids(t, &embeds));
        let masks = [Pattern::Causal, Pattern::Sliding(self.window)]
            .map(|pattern| nn::text_mask(t, run.attn, &embeds, packed.as_ref(), pattern));
        let mut locals = Locals::default();
        let dtype = embeds.dtype();
        let mut states = vec![embeds.clone()];
        locals.target_magnitude = Some(magnitude(t, &embeds));
        for projection in &self.altup_projections {
            states.push(locals.next_state(t, dtype, || projection.call(t, &embeds)));
        }
        let mut h = t.stack_at(&states.iter().collect::<Vec<_>>(), 0);
        let shared = SharedStates::default();
        let waves = self.rotary.each_ref().map(|rotary| {
            let rotary = rotary.as_ref()?;
            Some(rotary.call(t, &h, &position_ids))
        });
        let contexts = [0, 1].map(|kind| {
            let (cos, sin) = waves[kind].clone()?;
            Some(Rc::new(LayerContext {
                attn: run.attn,
                mask: masks[kind].clone(),
                cos,
                sin,
                cache: cache.clone(),
                shared: shared.clone(),
                _position_ids: position_ids.clone(),
            }))
        });
        for (i, layer) in self.layers.iter().enumerate() {
            let Some(context) = contexts[usize::from(self.slides[i])].clone() else {
                unreachable!("every kind of layer has its rotary embedding")
            };
            let block = layer.clone();
            let forward = move |t: &Tape, x: Tensor, own: &Tensor| block.forward(t, &context, x, own);
            h = run.block_with(t, layer, (h, t.select(&inputs, 2)), forward);
        }
        locals.target_magnitude = Some(magnitude(t, &t.select(&h, 0)));
        states = vec![t.select(&h, 0)];
        // Another variable holds the projections of this loop.
        let _projected = locals.projected.take();
        for projection in &self.altup_unembed_projections {
            states.push(locals.next_state(t, dtype, || projection.call(t, &t.select(&h, 0))));
        }
        h = t.stack_at(&states.iter().collect::<Vec<_>>(), 0);
        h = t.mean(&h, 0);
        let out = self.norm.call(t, &h);
        drop((
            states,
            locals,
            contexts,
            waves,
            shared,
            masks,
            position_ids,
            inputs,
            embeds,
        ));
        out
    }

    /// `get_per_layer_inputs` and `project_per_layer_inputs`: inputs of the layers, [batch, seq, layers, width].
    fn inputs(&self, t: &Tape, embeds: &Tensor, ids: &Tensor) -> Tensor {
        let split = |x: &Tensor| t.reshape(x, [x.size(0), x.size(1), x.last() / self.input_width, self.input_width]);
        let looked_up = split(&self.embed_tokens_per_layer.call(t, ids));
        let in_type = |scale: &Tensor| t.to_dtype(scale, embeds.dtype());
        let mut projected = {
            let projected = self.per_layer_model_projection.call(t, embeds);
            split(&t.mul_(projected, &in_type(&self.per_layer_projection_scale)))
        };
        projected = self.per_layer_projection_norm.call(t, &projected);
        let sum = t.add(&projected, &looked_up);
        let out = t.mul(&sum, &in_type(&self.per_layer_input_scale));
        drop((sum, projected, looked_up));
        out
    }
}

impl Locals {
    /// Makes the next hidden state of each token: a projection that is given the magnitude of the first.
    fn next_state(&mut self, t: &Tape, dtype: DType, project: impl FnOnce() -> Tensor) -> Tensor {
        let projected = project();
        self.projected = Some(projected.clone());
        let state = t.to_dtype(&projected, dtype);
        drop(projected);
        self.state = Some(state.clone());
        let mean = {
            let squares = t.pow(&state);
            t.mean_last(&squares)
        };
        self.magnitude = Some(mean.clone());
        let root = {
            let least = {
                let epsilon = t.empty([], DType::F32, "least magnitude");
                t.maximum(&mean, &epsilon)
            };
            t.sqrt(&least)
        };
        drop(mean);
        self.magnitude = Some(root.clone());
        let scaled = {
            let Some(target) = &self.target_magnitude else {
                unreachable!("the first state's magnitude is known")
            };
            let product = t.mul(&state, target);
            t.div(&product, &root)
        };
        drop(state);
        self.state = Some(scaled.clone());
        scaled
    }
}

/// `torch.mean(x**2, dim=-1, keepdim=True) ** 0.5`.
fn magnitude(t: &Tape, x: &Tensor) -> Tensor {
    let mean = {
        let squares = t.pow(x);
        t.mean_last(&squares)
    };
    t.pow(&mean)
}
