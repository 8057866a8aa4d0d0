//! `Zamba2ForCausalLM` (`transformers/models/zamba2/modeling_zamba2.py`).

use std::rc::Rc;

use super::config::Zamba2Config;
use super::layer::{Layer, Shared};
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::head::{Logits, head_for};
use crate::model::forward::Run;
use crate::model::parts::mixed_layers::{MixedDecoder, MixedLm};
use crate::model::parts::text::run_blocks;
use crate::nn::{self, Builder, Embedding, Numbered, Pattern, RmsNorm, Rotary};
use crate::tape::{Component, Tape, Tensor};

/// `ZambaModel`, `Zamba2Model`.
pub(in crate::model::families) struct Zamba2 {
    pub embed_tokens: Embedding,
    pub layers: Vec<Numbered<Layer>>,
    pub norm: RmsNorm,
    pub rotary: Option<Rotary>,
    /// True if layers are handed the positions, which their checkpoints then hold (Zamba 2).
    pub hands_positions: bool,
}

/// Makes the model of Zamba 2.
pub(super) fn model(b: &Builder, c: &Zamba2Config) -> MixedLm<Zamba2> {
    headed(b, c.tie_word_embeddings, || Zamba2::new(b, c))
}

/// Makes a model and its head.
pub(in crate::model::families) fn headed(b: &Builder, ties: bool, make: impl FnOnce() -> Zamba2) -> MixedLm<Zamba2> {
    let model = b.tape().component("model", Component::LanguageModel, make);
    MixedLm {
        lm_head: head_for(b, model.embed_tokens.weight(), ties),
        model,
        logits: Logits::AsTheyAre,
    }
}

impl Zamba2 {
    fn new(b: &Builder, c: &Zamba2Config) -> Self {
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let (mut transformers, mut hybrid) = (Vec::new(), 0..);
        let mut layers = Vec::new();
        for (i, &is_hybrid) in c.is_hybrid.iter().enumerate() {
            let index = if is_hybrid { hybrid.next() } else { None };
            let make = || Rc::new(Layer::new(b, c, index.map(|index| (index, &mut transformers))));
            layers.push(Numbered::new(b, "layers", i, make));
        }
        let norm = RmsNorm::new(b, "final_layernorm", c.hidden);
        let rotary = c.rope.as_ref().map(|rope| {
            let rotary = Rotary::new(b, c.head_dim()).dynamic(rope.is_dynamic());
            rotary.initialised(b.tape())
        });
        Self {
            embed_tokens,
            layers,
            norm,
            rotary,
            hands_positions: true,
        }
    }
}

impl MixedDecoder for Zamba2 {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    fn forward_text(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        packed: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let copy = t.clone_of(&embeds);
        let cache = run.cache(&[]);
        let position_ids = packed.cloned().unwrap_or_else(|| run.position_ids(t, &embeds));
        let mask = nn::text_mask(t, run.attn, &embeds, packed, Pattern::Causal);
        let padding = padding.and_then(|padding| nn::recurrent_mask(t, padding));
        // Without positions no layer reads the tables: the embeddings, which live as long, stand in their place.
        let (cos, sin) = match &self.rotary {
            Some(rotary) => rotary.call(t, &embeds, &position_ids),
            None => (embeds.clone(), embeds.clone()),
        };
        let handed = self.hands_positions.then(|| position_ids.clone());
        let shared = Rc::new(Shared {
            block: BlockContext {
                attn: run.attn,
                mask,
                cos,
                sin,
                splits_last: false,
                cache,
                position_ids: handed,
            },
            padding,
            embeds: copy,
            checkpoints: run.checkpoints(t) && !run.setup.reentrant,
        });
        let h = run_blocks(t, run, (&self.layers, &shared), embeds.clone(), Layer::forward);
        let out = self.norm.call(t, &h);
        drop((h, shared, embeds, position_ids));
        out
    }
}
