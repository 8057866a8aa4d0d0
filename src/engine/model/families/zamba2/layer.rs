//! Layers of Zamba and Zamba 2.

use std::rc::Rc;

use super::config::Zamba2Config;
use super::transformer::SharedTransformer;
use crate::model::decoder::block::BlockContext;
use crate::model::parts::mamba2::Mixer2;
use crate::nn::{Builder, KvCache, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// State that all layers of one forward share.
pub(in crate::model::families) struct Shared {
    pub block: BlockContext,
    /// Positions that are not padding, [batch, seq]; `None` if nothing is padded.
    pub padding: Option<Tensor>,
    /// A copy of the embeddings, [batch, seq, hidden].
    pub embeds: Tensor,
    /// True if layers are checkpointed, and with them the mixers of hybrid ones within.
    pub checkpoints: bool,
}

/// A mixer.
pub(in crate::model::families) trait Mix {
    /// [batch, seq, hidden] and a mask [batch, seq] → [batch, seq, hidden].
    fn call(&self, t: &Tape, padding: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor;
}

impl Mix for Mixer2 {
    fn call(&self, t: &Tape, padding: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        self.call(t, padding, cache, x)
    }
}

/// A transformer block that hybrid layers share.
pub(in crate::model::families) trait Transform {
    /// The stream `x` beside the embeddings, [batch, seq, hidden] each → the same, for the hybrid layer `index`.
    fn call(&self, t: &Tape, shared: &BlockContext, index: usize, inputs: [&Tensor; 2]) -> Tensor;
}

/// `ZambaMambaDecoderLayer`, `ZambaHybridLayer`, and those of Zamba 2.
pub(in crate::model::families) struct Layer {
    before: Option<Before>,
    mamba: Rc<MambaLayer>,
}

/// What a hybrid layer has before its mixer.
pub(in crate::model::families) struct Before {
    pub transformer: Rc<dyn Transform>,
    pub linear: Linear,
    /// Number of the layer among the hybrid ones.
    pub index: usize,
}

/// `ZambaMambaDecoderLayer`, `Zamba2MambaDecoderLayer`.
pub(in crate::model::families) struct MambaLayer {
    /// That of the layer itself, if it is not hybrid.
    module: Option<Module>,
    mamba: Box<dyn Mix>,
    norm: RmsNorm,
}

impl MambaLayer {
    /// Makes a layer around a mixer; `module` is its own within a hybrid layer.
    pub fn new(b: &Builder, hidden: u64, module: Option<Module>, mixer: impl FnOnce() -> Box<dyn Mix>) -> Self {
        Self {
            module,
            mamba: b.tape().scope("mamba", mixer),
            norm: RmsNorm::new(b, "input_layernorm", hidden),
        }
    }

    fn call(&self, t: &Tape, [padding, before]: [Option<&Tensor>; 2], cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        let forward = || {
            let mut h = match before {
                Some(before) => t.add(x, before),
                None => x.clone(),
            };
            h = self.norm.call(t, &h);
            h = self.mamba.call(t, padding, cache, &h);
            t.add(x, &h)
        };
        match &self.module {
            Some(module) => module.call(t, forward),
            None => forward(),
        }
    }
}

impl Layer {
    /// Takes the parts of a layer.
    pub fn of(before: Option<Before>, mamba: MambaLayer) -> Self {
        Self {
            before,
            mamba: Rc::new(mamba),
        }
    }

    /// Makes a layer of Zamba 2; `hybrid` gives its number among the hybrid ones, if it is one, and the blocks that were made,
    /// of which it shares one.
    pub(super) fn new(b: &Builder, c: &Zamba2Config, hybrid: Option<(usize, &mut Vec<Rc<SharedTransformer>>)>) -> Self {
        let t = b.tape();
        let layer = |module| MambaLayer::new(b, c.hidden, module, || Box::new(Mixer2::new(b, &c.mamba)));
        let Some((index, transformers)) = hybrid else {
            return Self::of(None, layer(None));
        };
        let linear = Linear::new(b, "linear", c.hidden, c.hidden, false);
        let mamba = t.scope("mamba_decoder", || layer(Some(b.module())));
        let block = index % c.blocks as usize;
        // A class that ties no weights leaves each layer its own block.
        if block == transformers.len() || !c.tie_word_embeddings {
            let made = t.scope("shared_transformer", || SharedTransformer::new(b, c, block as u64));
            transformers.truncate(block);
            transformers.push(Rc::new(made));
        }
        let before = Before {
            transformer: transformers[block].clone(),
            linear,
            index,
        };
        Self::of(Some(before), mamba)
    }

    /// [batch, seq, hidden] → the same.
    pub fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let before = self.before.as_ref().map(|before| {
            let h = before
                .transformer
                .call(t, &shared.block, before.index, [&x, &shared.embeds]);
            before.linear.call(t, &h)
        });
        let padding = shared.padding.as_ref();
        let (Some(before), true) = (&before, shared.checkpoints) else {
            let out = self
                .mamba
                .call(t, [padding, before.as_ref()], shared.block.cache.as_ref(), &x);
            drop((before, x));
            return out;
        };
        // A checkpoint within that of the layer, which keeps what comes by name: nothing is cached beside it.
        let (mamba, padding, before) = (self.mamba.clone(), padding.cloned(), before.clone());
        let mixed = move |t: &Tape, x: Tensor| mamba.call(t, [padding.as_ref(), Some(&before)], None, &x);
        t.checkpoint(x, Rc::new(mixed))
    }
}
