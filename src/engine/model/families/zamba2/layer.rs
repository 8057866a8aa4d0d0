//! Layers of Zamba 2.

use std::rc::Rc;

use super::config::Zamba2Config;
use super::transformer::SharedTransformer;
use crate::model::decoder::block::BlockContext;
use crate::model::parts::mamba2::Mixer2;
use crate::nn::{Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// State that all layers of one forward share.
pub(super) struct Shared {
    pub block: BlockContext,
    /// Positions that are not padding, [batch, seq]; `None` if nothing is padded.
    pub padding: Option<Tensor>,
    /// A copy of the embeddings, [batch, seq, hidden].
    pub embeds: Tensor,
}

/// `Zamba2MambaDecoderLayer` or `Zamba2HybridLayer`.
pub(super) struct Layer {
    before: Option<Before>,
    mamba: MambaLayer,
}

/// What a hybrid layer has before its mixer.
struct Before {
    transformer: Rc<SharedTransformer>,
    linear: Linear,
    /// Number of the layer among the hybrid ones.
    index: usize,
}

/// `Zamba2MambaDecoderLayer`.
struct MambaLayer {
    /// That of the layer itself, if it is not hybrid.
    module: Option<Module>,
    mamba: Mixer2,
    norm: RmsNorm,
}

impl MambaLayer {
    fn new(b: &Builder, c: &Zamba2Config, module: Option<Module>) -> Self {
        Self {
            module,
            mamba: b.tape().scope("mamba", || Mixer2::new(b, &c.mamba)),
            norm: RmsNorm::new(b, "input_layernorm", c.hidden),
        }
    }

    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor, before: Option<&Tensor>) -> Tensor {
        let forward = || {
            let mut h = match before {
                Some(before) => t.add(x, before),
                None => x.clone(),
            };
            h = self.norm.call(t, &h);
            h = self
                .mamba
                .call(t, shared.padding.as_ref(), shared.block.cache.as_ref(), &h);
            t.add(x, &h)
        };
        match &self.module {
            Some(module) => module.call(t, forward),
            None => forward(),
        }
    }
}

impl Layer {
    /// Makes a layer; `hybrid` gives its number among the hybrid ones, if it is one, and the blocks that were made,
    /// of which it shares one.
    pub fn new(b: &Builder, c: &Zamba2Config, hybrid: Option<(usize, &mut Vec<Rc<SharedTransformer>>)>) -> Self {
        let t = b.tape();
        let Some((index, transformers)) = hybrid else {
            return Self {
                before: None,
                mamba: MambaLayer::new(b, c, None),
            };
        };
        let linear = Linear::new(b, "linear", c.hidden, c.hidden, false);
        let mamba = t.scope("mamba_decoder", || MambaLayer::new(b, c, Some(b.module())));
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
        Self {
            before: Some(before),
            mamba,
        }
    }

    /// [batch, seq, hidden] → the same.
    pub fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let before = self.before.as_ref().map(|before| {
            let h = before
                .transformer
                .call(t, &shared.block, before.index, [&x, &shared.embeds]);
            before.linear.call(t, &h)
        });
        let out = self.mamba.call(t, shared, &x, before.as_ref());
        drop((before, x));
        out
    }
}
