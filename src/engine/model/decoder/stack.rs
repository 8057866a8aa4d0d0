//! Decoders like Llama's without their head (`transformers/models/{llama,mistral,qwen2,…}/modeling_*.py`).

use std::rc::Rc;

use super::block::{Block, BlockContext};
use super::config::DecoderConfig;
use super::family::{LlamaModules, Modules};
use super::forms::{LateScale, Rotation};
use super::head::{head_for, last_logits};
use super::layer::Layer;
use super::rotaries::rotaries;
use super::streams::StreamHead;
use crate::dtype::DType;
use crate::model::families::decoders;
use crate::model::forward::Run;
use crate::model::lazy::Blocks;
use crate::model::parts::qwen_vl::MropePositions;
use crate::model::parts::text::Returned;
use crate::nn::{
    self, Builder, Embedding, KvCache, Linear, MropeLayout, Norm, Numbered, Pattern, PowerRmsNorm, Rotary,
};
use crate::setup::Attention;
use crate::tape::{Mask, Tape, Tensor, where_graph_begins};

/// Function of a block's index and input, which returns another input if it replaces that.
pub type Before<'a> = &'a dyn Fn(&Tape, usize, &Tensor) -> Option<Tensor>;

/// `LlamaModel` and its variants: embeddings, blocks, last norm.
pub struct Decoder {
    /// Token embedding; `None` after the first stage of a pipeline.
    embed_tokens: Option<Embedding>,
    /// Factor of the token embedding, in a family that keeps it as a buffer.
    embed_scale: Option<Tensor>,
    /// Norm of the token embedding, in a family that has one.
    embed_norm: Option<PowerRmsNorm>,
    layers: Vec<Numbered<dyn Block>>,
    /// Number of positions that each block sees; `None` if it sees all.
    windows: Vec<Option<u64>>,
    /// True for each block with experts in place of its MLP.
    sparse: Vec<bool>,
    /// For each block, the number of its kind in a family whose blocks differ in sizes of their own.
    own_kinds: Vec<u64>,
    /// True if all blocks get the first one's mask, and no other is made (Mistral, Phi-3).
    one_mask: bool,
    /// True if masks are made of the kinds of blocks that there are, and all slide (Laguna, MiMo).
    slides_alone: bool,
    /// True if the mask of sliding blocks is made even if none slides.
    both_masks: bool,
    /// True if the mask of blocks that see all is made even where SDPA's own causal one suffices.
    always_masks: bool,
    /// What mixes the streams of the residual after the blocks, in a family that has some.
    streams: Option<StreamHead>,
    /// True if blocks hand a choice of keys on to the next.
    passes_choice: bool,
    /// Last norm; `None` before the last stage of a pipeline.
    norm: Option<Norm>,
    rotary: Rotary,
    /// Rotary embedding of sliding blocks, in a family that has one for each kind of block.
    sliding_rotary: Option<Rotary>,
    /// Rotary embedding that is never called.
    _spare_rotary: Option<Rotary>,
    /// True if blocks that see all positions are handed no cosines and sines.
    tables_for_sliding: bool,
    /// True if cosines and sines stay in fp32.
    rotates_by_f32: bool,
    /// True if embeddings are multiplied by a number.
    scales_first: bool,
    /// Multiplication of the embeddings by a number after the masks are made.
    late_scale: LateScale,
    /// True if the last norm also comes before the blocks.
    norm_first: bool,
    /// True if transformers has no SDPA for the family, and takes eager attention unless told otherwise.
    is_eager: bool,
}

impl Decoder {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        Self::with_table(b, c, &|| Embedding::new(b, "embed_tokens", c.vocab, c.hidden))
    }

    /// Makes the part of the decoder that belongs to the tape's pipeline stage.
    pub fn with_table(b: &Builder, c: &DecoderConfig, table: &dyn Fn() -> Embedding) -> Self {
        Self::with(b, c, table, &|index| block(b, c, index))
    }

    /// Makes a decoder of these blocks, by their index.
    pub fn with_blocks(b: &Builder, c: &DecoderConfig, block: &dyn Fn(usize) -> Rc<dyn Block>) -> Self {
        Self::with(b, c, &|| Embedding::new(b, "embed_tokens", c.vocab, c.hidden), block)
    }

    fn with(
        b: &Builder,
        c: &DecoderConfig,
        table: &dyn Fn() -> Embedding,
        block: &dyn Fn(usize) -> Rc<dyn Block>,
    ) -> Self {
        let t = b.tape();
        let stage = t.stage();
        let range = stage.layers(c.layers as usize);
        let embed_tokens = stage.is_first().then(table);
        let embed_scale = c.embed_scale_is_whole.map(|is_whole| {
            let dtype = if is_whole { DType::I64 } else { b.dtype() };
            t.scope("embed_tokens", || b.buffer("embed_scale", [], dtype))
        });
        let layers = range
            .clone()
            .map(|i| Numbered::new(b, "layers", i, || block(i)))
            .collect();
        let modules = match c.family.modules {
            Modules::Llama(modules) => modules,
            Modules::Gemma(_) => LlamaModules::LLAMA,
        };
        let last_norm = modules.last_norm.unwrap_or(c.norm);
        let norm = stage.is_last().then(|| Norm::new(b, "norm", c.hidden, last_norm));
        let has_spare = matches!(
            c.family.modules,
            Modules::Llama(LlamaModules {
                has_spare_rotary: true,
                ..
            })
        );
        let spare_rotary = has_spare.then(|| rotaries(b, c).0);
        let (rotary, sliding_rotary) = rotaries(b, c);
        let streams = c.own.streams().map(|streams| StreamHead::new(b, c, streams));
        Self {
            scales_first: c.family.block().scales_stream && embed_scale.is_none() && !c.scales_late,
            embed_tokens,
            embed_scale,
            embed_norm: modules.norms_embeddings.then(|| PowerRmsNorm::plain("embed_norm")),
            windows: c.windows[range.clone()].to_vec(),
            own_kinds: range.clone().map(|i| c.own.kind(i)).collect(),
            sparse: range.map(|i| c.experts.as_ref().is_some_and(|e| e.sparse[i])).collect(),
            layers,
            one_mask: c.family.has_one_mask(),
            slides_alone: modules.kind_shares.is_some() && c.windows.iter().all(Option::is_some),
            both_masks: c.family.has_both_masks(),
            always_masks: matches!(
                c.family.modules,
                Modules::Llama(LlamaModules { always_masks: true, .. })
            ),
            streams,
            passes_choice: c.own.passes_choice(),
            norm,
            rotary,
            sliding_rotary,
            _spare_rotary: spare_rotary,
            tables_for_sliding: modules.tables_for_sliding,
            rotates_by_f32: matches!(c.family.block().rotation, Rotation::ByF32 | Rotation::AlternatingInF32),
            late_scale: if c.scales_late {
                c.family.late_scale()
            } else {
                LateScale::Never
            },
            norm_first: matches!(c.family.modules, Modules::Llama(LlamaModules { norm_first: true, .. })),
            is_eager: c.family.is_eager(),
        }
    }

    /// Weight of the token embedding; `None` after the first stage of a pipeline.
    pub fn table(&self) -> Option<&Tensor> {
        self.embed_tokens.as_ref().map(Embedding::weight)
    }

    /// Makes the output projection, tied to the token embedding or separate; `None` before the last stage of a pipeline.
    pub fn head(&self, b: &Builder, c: &DecoderConfig) -> Option<Linear> {
        let table = self.table()?;
        b.tape()
            .stage()
            .is_last()
            .then(|| head_for(b, table, c.tie_word_embeddings))
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let embeds = self.embed_unscaled(t, run, ids);
        match self.scales_first {
            true => t.scale(&embeds),
            false => embeds,
        }
    }

    /// Multiplies embeddings by the factor that the table keeps as a buffer, if there is one.
    fn scaled(&self, t: &Tape, table: &Embedding, looked_up: Tensor) -> Tensor {
        match &self.embed_scale {
            Some(scale) => t.mul(&looked_up, &t.to_dtype(scale, table.weight().dtype())),
            None => looked_up,
        }
    }

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape.
    pub fn forward(&self, t: &Tape, run: &Run, embeds: Tensor) -> Tensor {
        self.forward_packed(t, run, embeds, None)
    }

    /// Returns the logits [batch, 1, vocab] after one new token of each sample, ids [batch, 1].
    pub fn next_logits(&self, t: &Tape, run: &Run, lm_head: &Linear, ids: &Tensor) -> Tensor {
        let embeds = self.embed(t, run, ids);
        let h = self.forward(t, run, embeds);
        last_logits(t, lm_head, &h)
    }

    /// Embeddings [batch, seq, hidden] → last hidden states, with samples packed into one row at the positions
    /// `packed`, [1, seq].
    pub fn forward_packed(&self, t: &Tape, run: &Run, embeds: Tensor, packed: Option<&Tensor>) -> Tensor {
        let cache = run.cache(&self.windows);
        let position_ids = packed.cloned().unwrap_or_else(|| run.position_ids(t, &embeds));
        let masks = self.masks(t, run, &embeds, packed);
        match self.late_scale {
            LateScale::Never => self.at(t, run, embeds, position_ids, masks, cache),
            LateScale::Replaces => {
                let scaled = t.scale(&embeds);
                drop(embeds);
                self.at(t, run, scaled, position_ids, masks, cache)
            }
            LateScale::Beside(_) => {
                let scaled = t.scale(&embeds);
                let out = self.at(t, run, scaled, position_ids, masks, cache);
                drop(embeds);
                out
            }
        }
    }

    /// Runs all blocks at positions [batch, seq], with the masks of full and of sliding ones.
    fn at(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        position_ids: Tensor,
        (mask, sliding_mask): (Option<Mask>, Option<Mask>),
        cache: Option<KvCache>,
    ) -> Tensor {
        let dtype = if self.rotates_by_f32 {
            DType::F32
        } else {
            embeds.dtype()
        };
        let tables = |rotary: &Rotary| rotary.call_in(t, dtype, &position_ids);
        let (cos, sin) = tables(&self.rotary);
        let of_sliding = self.sliding_rotary.as_ref().map(tables);
        let mut shared = BlockContext {
            attn: self.attention(run),
            mask,
            cos,
            sin,
            splits_last: false,
            cache,
            position_ids: Some(position_ids.clone()),
        };
        let mut sliding = BlockContext {
            mask: sliding_mask,
            ..shared.clone()
        };
        if let Some((cos, sin)) = of_sliding {
            sliding = BlockContext { cos, sin, ..sliding };
        }
        if self.tables_for_sliding {
            // Positions, which every block is handed, stand in for the tables that these are not.
            (shared.cos, shared.sin) = (position_ids.clone(), position_ids.clone());
        }
        drop(position_ids);
        self.blocks(t, run, embeds, (shared, sliding), (0, |_: &Tape, _, h| h), None)
    }

    /// Token ids [batch, seq] → [batch, seq, hidden], before a family's factor.
    pub fn embed_unscaled(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let Some(table) = &self.embed_tokens else {
            unreachable!("a stage without a table is given hidden states")
        };
        t.scope("embed_tokens", || {
            let mut looked_up = table.forward(t, ids);
            if let Some(norm) = &self.embed_norm {
                looked_up = norm.call(t, &looked_up);
            }
            run.embedded(t, self.scaled(t, table, looked_up))
        })
    }

    /// Runs all blocks on scaled embeddings; `before` is called with each block's index and input, and may replace it.
    pub fn forward_replacing(&self, t: &Tape, run: &Run, embeds: &Tensor, before: Before<'_>) -> Tensor {
        let embeds = t.scale(embeds);
        let position_ids = nn::position_ids(t, &embeds);
        let (mask, _) = self.masks(t, run, &embeds, None);
        let (cos, sin) = self.rotary.call(t, &embeds, &position_ids);
        let shared = BlockContext {
            attn: self.attention(run),
            mask,
            cos,
            sin,
            splits_last: false,
            cache: run.cache(&self.windows),
            position_ids: Some(position_ids),
        };
        let sliding = shared.clone();
        self.blocks(t, run, embeds, (shared, sliding), (0, |_: &Tape, _, h| h), Some(before))
    }

    /// Runs all blocks at positions of time, height and width; `after` is called with each block's
    /// index and output, and changes the outputs of the first `after.0` blocks.
    pub fn forward_multimodal(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        positions: MropePositions<'_>,
        after: (usize, impl Fn(&Tape, usize, Tensor) -> Tensor),
    ) -> Tensor {
        let cache = run.cache(&self.windows);
        let (mask, sliding_mask) = self.masks(t, run, &embeds, None);
        let (cos, sin) = self
            .rotary
            .call_multimodal(t, &embeds, positions.axes, positions.layout);
        let shared = BlockContext {
            attn: self.attention(run),
            mask,
            cos,
            sin,
            splits_last: positions.layout == MropeLayout::Sections,
            cache,
            position_ids: positions.of_layers.cloned(),
        };
        let sliding = BlockContext {
            mask: sliding_mask,
            ..shared.clone()
        };
        self.blocks(t, run, embeds, (shared, sliding), after, None)
    }

    /// Implementation of attention.
    fn attention(&self, run: &Run) -> Attention {
        match self.is_eager {
            true => Attention::Eager,
            false => run.attn,
        }
    }

    /// Makes the masks of blocks that see all positions, and of sliding blocks.
    fn masks(&self, t: &Tape, run: &Run, embeds: &Tensor, packed: Option<&Tensor>) -> (Option<Mask>, Option<Mask>) {
        let mask = |pattern| nn::text_mask(t, self.attention(run), embeds, packed, pattern);
        let window = self.windows.iter().copied().flatten().next();
        let window = window.or(self.both_masks.then_some(0));
        let full = match window {
            Some(_) if self.one_mask || self.slides_alone => None,
            None if self.always_masks && packed.is_none() => {
                let made = nn::made_mask(t, self.attention(run), embeds, Pattern::Causal);
                return (Some(made), None);
            }
            _ => mask(Pattern::Causal),
        };
        (full, window.and_then(|window| mask(Pattern::Sliding(window))))
    }

    /// Kinds of blocks, for layer deduplication: blocks differ in their window, in having experts, in sizes of their own, and
    /// in belonging to the first `changed`. With a cache and mixed windows each block is a kind of its own, since the cache looks up its window
    /// by index.
    fn kinds(&self, has_cache: bool, changed: usize) -> Vec<u64> {
        let by_number = self.passes_choice || has_cache && self.windows.iter().any(|window| *window != self.windows[0]);
        let kind = |(i, window): (usize, &Option<u64>)| match by_number {
            true => i as u64,
            false => {
                self.own_kinds[i] << 40
                    | window.unwrap_or(0) << 2
                    | u64::from(self.sparse[i]) << 1
                    | u64::from(i < changed)
            }
        };
        self.windows.iter().enumerate().map(kind).collect()
    }

    fn blocks(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        (full, sliding): (BlockContext, BlockContext),
        (changed, after): (usize, impl Fn(&Tape, usize, Tensor) -> Tensor),
        before: Option<Before<'_>>,
    ) -> Tensor {
        let (full, sliding) = (Rc::new(full), Rc::new(sliding));
        let h = match &self.norm {
            Some(norm) if self.norm_first => norm.call(t, &embeds),
            _ => match &self.streams {
                Some(streams) => streams.copies(t, &embeds),
                None => embeds.clone(),
            },
        };
        // Embeddings that were multiplied beside their product live elsewhere; the product lives for the first block only.
        let embeds = (!matches!(self.late_scale, LateScale::Beside(_))).then_some(embeds);
        let mut _block_output = h.clone();
        let mut h = Some(h);
        let mut choice = None;
        let kinds = match before {
            Some(_) => (0..self.layers.len() as u64).collect(),
            None => where_graph_begins(self.kinds(full.cache.is_some(), changed), &_block_output),
        };
        t.stack(&kinds, &mut |i| {
            if let Some(replaced) = before.and_then(|before| before(t, i, h.as_ref()?)) {
                h = Some(replaced.clone());
                _block_output = replaced;
            }
            let shared = if self.windows[i].is_some() { &sliding } else { &full };
            let (layer, shared) = (self.layers[i].clone(), shared.clone());
            let Some(input) = h.take() else {
                unreachable!("each block has an input")
            };
            let output = match self.passes_choice {
                true => choosing(t, run, (&self.layers[i], shared), input, &mut choice),
                false => {
                    let forward = move |t: &Tape, x: Tensor| layer.forward(t, &shared, x);
                    run.block(t, &self.layers[i], input, forward)
                }
            };
            // A block's output has a variable of its own, which lives until the next one replaces it.
            _block_output = output.clone();
            h = Some(after(t, i, output));
        });
        let Some(h) = h else {
            unreachable!("each block has an output")
        };
        let mixed = self.streams.as_ref().map(|streams| streams.call(t, &h));
        let out = match &self.norm {
            Some(norm) => norm.call(t, mixed.as_ref().unwrap_or(&h)),
            None => h,
        };
        drop((mixed, embeds));
        out
    }
}

/// Runs a block with the choice of the block before it, and replaces that by the block's own once it returns.
fn choosing(
    t: &Tape,
    run: &Run,
    (layer, shared): (&Numbered<dyn Block>, Rc<BlockContext>),
    input: Tensor,
    choice: &mut Option<Tensor>,
) -> Tensor {
    let returned = Rc::new(Returned::default());
    let (called, slot, before) = (layer.clone(), returned.clone(), choice.clone());
    let forward = move |t: &Tape, x: Tensor| {
        let (out, own) = called.forward_choosing(t, &shared, x, before.as_ref());
        slot.set(own);
        out
    };
    let output = run.block(t, layer, input, forward);
    *choice = returned.take();
    output
}

/// Makes a block of the family's kind.
fn block(b: &Builder, c: &DecoderConfig, index: usize) -> Rc<dyn Block> {
    match decoders::has_own_blocks(c.family) {
        true => (Blocks::get().block)(b, c, index),
        false => Rc::new(Layer::new(b, c, index)),
    }
}
