//! Decoders in which some layers mix positions recurrently, and the others by attention.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::head::{Logits, formed_logits_and_loss};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Linear, Numbered, Pattern, RmsNorm};
use crate::tape::{Component, Tape, Tensor, where_graph_begins};

/// State that layers of one kind share in one forward.
pub struct LayerContext {
    /// Mask, rotary tables and cache; recurrent layers get no mask.
    pub block: BlockContext,
    /// Positions that are not padding, [batch, seq], for recurrent layers; `None` if nothing is padded.
    pub padding: Option<Tensor>,
    /// What layers return beside their output.
    pub returned: Returned,
}

impl LayerContext {
    /// Makes what such a model's forward makes before its first layer, in this order: positions, the causal mask, the mask of
    /// recurrent layers, and what `tables` makes of the positions [batch, seq], the rotary cosines and sines.
    pub fn new(
        t: &Tape,
        run: &Run,
        embeds: &Tensor,
        packed: Option<&Tensor>,
        padding: Option<&Tensor>,
        tables: impl FnOnce(&Tensor) -> (Tensor, Tensor),
    ) -> Self {
        let cache = run.cache(&[]);
        let position_ids = packed.cloned().unwrap_or_else(|| run.position_ids(t, embeds));
        let mask = nn::text_mask(t, run.attn, embeds, packed, Pattern::Causal);
        let padding = padding.and_then(|padding| nn::recurrent_mask(t, padding));
        let (cos, sin) = tables(&position_ids);
        Self {
            block: BlockContext {
                attn: run.attn,
                mask,
                cos,
                sin,
                splits_last: false,
                cache,
                position_ids: Some(position_ids),
            },
            padding,
            returned: Returned::default(),
        }
    }
}

/// What a layer returns beside its output, which the model's variable holds until the next layer returns (Bamba).
#[derive(Clone, Default)]
pub struct Returned(Rc<Slot>);

#[derive(Default)]
struct Slot {
    /// False while a checkpointed layer runs again: what it then returns is dropped at once.
    is_open: Cell<bool>,
    tensor: RefCell<Option<Tensor>>,
}

impl Returned {
    /// Hands a tensor to the model.
    pub fn put(&self, tensor: Option<Tensor>) {
        if self.0.is_open.get() {
            *self.0.tensor.borrow_mut() = tensor;
        }
    }

    /// Runs a layer's forward, and returns what it handed over beside its output.
    fn of<R>(&self, forward: impl FnOnce() -> R) -> (R, Option<Tensor>) {
        self.0.is_open.set(true);
        let out = forward();
        self.0.is_open.set(false);
        (out, self.0.tensor.borrow_mut().take())
    }
}

/// A layer of either kind.
pub trait MixedLayer {
    /// True if layers with attention scan a state too, and get the padding of recurrent ones (Falcon H1).
    const DOES_BOTH: bool = false;

    /// True if recurrent layers get the rotary tables too, so that their checkpoints keep these (not OLMo Hybrid's).
    const ALL_GET_TABLES: bool = true;

    /// Kind of the layer, which layers that make the same tensors share, beside its being recurrent or not.
    fn kind(&self) -> u64 {
        0
    }

    /// [batch, seq, hidden] → the same.
    fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor) -> Tensor;
}

/// Runs all layers and the last norm, [batch, seq, hidden] → the same. Each layer gets only the
/// mask of its kind, so that a checkpoint keeps no other.
pub fn run_layers<L: MixedLayer + 'static>(
    t: &Tape,
    run: &Run,
    (layers, is_recurrent): (&[Numbered<L>], &[bool]),
    norm: &RmsNorm,
    shared: LayerContext,
    embeds: Tensor,
) -> Tensor {
    let shared_returned = shared.returned.clone();
    // The embeddings, which the first layer's checkpoint keeps anyway, stand in the place of tables that no layer reads.
    let [cos, sin] = match L::ALL_GET_TABLES {
        true => [shared.block.cos.clone(), shared.block.sin.clone()],
        false => [embeds.clone(), embeds.clone()],
    };
    let recurrent = Rc::new(LayerContext {
        block: BlockContext {
            mask: None,
            cos,
            sin,
            ..shared.block.clone()
        },
        padding: shared.padding.clone(),
        returned: shared.returned.clone(),
    });
    let attention = Rc::new(LayerContext {
        block: shared.block,
        padding: shared.padding.filter(|_| L::DOES_BOTH),
        returned: shared.returned.clone(),
    });
    let mut h = embeds.clone();
    let mut _returned = None;
    let kinds: Vec<u64> = is_recurrent
        .iter()
        .zip(layers)
        .map(|(&is_recurrent, layer)| layer.kind() << 1 | u64::from(is_recurrent))
        .collect();
    t.stack(&where_graph_begins(kinds, &h), &mut |i| {
        let shared = if is_recurrent[i] { &recurrent } else { &attention };
        let (layer, shared) = (layers[i].clone(), shared.clone());
        let forward = move |t: &Tape, x: Tensor| layer.forward(t, &shared, x);
        // The caller's variable holds a layer's input until the layer returns.
        let input = h.clone();
        (h, _returned) = shared_returned.of(|| run.block(t, &layers[i], input, forward));
    });
    let out = norm.call(t, &h);
    // Masks and rotary tables are locals of the model's forward, and live as long.
    drop((h, embeds, _returned));
    out
}

/// Reads which of the layers, by default `count`, are recurrent: those that `layer_types` calls `recurrent`, or as
/// `otherwise` says of a number of layers.
pub fn read_layers(
    s: &Section,
    count: u64,
    recurrent: &str,
    otherwise: impl FnOnce(u64) -> Result<Vec<bool>, ModelError>,
) -> Result<Vec<bool>, ModelError> {
    let count = s.size("num_hidden_layers", count, limits::LAYERS)?;
    let Some(types) = s.value("layer_types") else {
        return otherwise(count);
    };
    let allowed = format!("{count} entries, each \"{recurrent}\" or \"full_attention\"");
    let wrong = || s.wrong("layer_types", types, &allowed);
    let list = types
        .as_array()
        .filter(|list| list.len() as u64 == count)
        .ok_or_else(wrong)?;
    list.iter()
        .map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(false),
            Some(kind) if kind == recurrent => Ok(true),
            _ => Err(wrong()),
        })
        .collect()
}

/// A decoder of mixed layers without its head.
pub trait MixedDecoder {
    /// Token ids [batch, seq] → [batch, seq, hidden].
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor;

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape: of samples at the positions `packed`,
    /// [1, seq], or of samples with the padding mask `padding`, [batch, seq].
    fn forward_text(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        packed: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Tensor;
}

/// A text model: a decoder of mixed layers, and its head.
pub struct MixedLm<D> {
    /// The attribute `model`.
    pub model: D,
    /// Output projection.
    pub lm_head: Linear,
    /// Form of the logits.
    pub logits: Logits,
}

impl<D: MixedDecoder> Forward for MixedLm<D> {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model", Component::LanguageModel, || {
            let embeds = self.model.embed(t, run, ids);
            let (packed, padding) = (batch.positions.as_ref(), batch.padding());
            self.model.forward_text(t, run, embeds, packed, padding)
        });
        formed_logits_and_loss(t, &self.lm_head, h, batch, self.logits)
    }
}
