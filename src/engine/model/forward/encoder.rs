//! The pre-norm block that CLIP, SigLIP, Idefics3 and ViT share: attention and an MLP, each after a layer norm and with
//! a residual connection. Families differ in names and in the order of construction.

use std::rc::Rc;

use super::Run;
use crate::dtype::DType;
use crate::model::config::{Activation, EncoderShape};
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Tape, Tensor};

/// Sizes and settings that the blocks of a tower share.
pub struct BlockConfig {
    pub family: BlockFamily,
    pub shape: EncoderShape,
    pub activation: Activation,
    pub attention_dropout: f64,
    /// Dropout after attention and after the MLP.
    pub dropout: f64,
    /// True if query, key and value projections have biases.
    pub qkv_bias: bool,
}

/// Family of a block, which decides the names of its parts and their order of construction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BlockFamily {
    /// CLIP: heads are split when all three projections are done.
    Clip,
    /// Idefics3: constructed like CLIP's.
    Idefics3,
    /// SigLIP: each norm is constructed before the part that it feeds.
    Siglip,
    /// ViT.
    Vit,
}

/// One block.
pub struct Block {
    family: BlockFamily,
    attention: SelfAttention,
    norm1: LayerNorm,
    mlp: Mlp,
    norm2: LayerNorm,
    dropout: f64,
}

/// Attention over all positions of a sample.
struct SelfAttention {
    family: BlockFamily,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    out_proj: Linear,
    heads: u64,
    dropout: f64,
}

/// Two linear maps around an activation.
struct Mlp {
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

/// Mask of the keys to attend to, shared by all blocks.
pub type SharedMask = Option<Rc<Mask>>;

/// Runs blocks one after the other, [batch, positions, hidden] each, and passes every output to `see`.
pub fn run_blocks(
    t: &Tape,
    run: &Run,
    name: &'static str,
    blocks: &[Rc<Block>],
    mask: &SharedMask,
    mut h: Tensor,
    mut see: impl FnMut(&Tensor),
) -> Tensor {
    for (i, block) in blocks.iter().enumerate() {
        let (block, mask, attn) = (block.clone(), mask.clone(), run.attn);
        let forward = move |t: &Tape, x: Tensor| block.forward(t, attn, mask.as_deref(), x);
        // The caller of a block holds its input until the block returns.
        h = t.layer(name, i, || {
            if run.checkpoints(t) {
                t.checkpoint(h.clone(), Rc::new(forward))
            } else {
                forward(t, h.clone())
            }
        });
        see(&h);
    }
    h
}

/// Makes the blocks of a tower as the modules `name.0`, `name.1`, ….
pub fn make_blocks(b: &Builder, name: &'static str, c: &BlockConfig) -> Vec<Rc<Block>> {
    (0..c.shape.layers as usize)
        .map(|i| b.tape().layer(name, i, || Rc::new(Block::new(b, c))))
        .collect()
}

impl BlockFamily {
    fn attention(self) -> &'static str {
        match self {
            Self::Vit => "attention",
            _ => "self_attn",
        }
    }

    fn out_proj(self) -> &'static str {
        match self {
            Self::Vit => "o_proj",
            _ => "out_proj",
        }
    }

    /// Returns true if heads are split after all three projections, not after each.
    fn splits_late(self) -> bool {
        self == Self::Clip
    }

    fn norms(self) -> [&'static str; 2] {
        match self {
            Self::Vit => ["layernorm_before", "layernorm_after"],
            _ => ["layer_norm1", "layer_norm2"],
        }
    }
}

impl Block {
    fn new(b: &Builder, c: &BlockConfig) -> Self {
        let [norm1, norm2] = c.family.norms();
        let norm = |name| LayerNorm::new(b, name, c.shape.hidden);
        let attention = || b.tape().scope(c.family.attention(), || SelfAttention::new(b, c));
        let mlp = || b.tape().scope("mlp", || Mlp::new(b, c));
        let (attention, norm1, norm2, mlp) = match c.family {
            BlockFamily::Clip | BlockFamily::Idefics3 => {
                let (attention, norm1, mlp) = (attention(), norm(norm1), mlp());
                (attention, norm1, norm(norm2), mlp)
            }
            BlockFamily::Siglip => {
                let (norm1, attention) = (norm(norm1), attention());
                (attention, norm1, norm(norm2), mlp())
            }
            BlockFamily::Vit => (attention(), norm(norm1), norm(norm2), mlp()),
        };
        Self {
            family: c.family,
            attention,
            norm1,
            mlp,
            norm2,
            dropout: c.dropout,
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, mask: Option<&Mask>, x: Tensor) -> Tensor {
        let [norm1, norm2] = self.family.norms();
        let residual = x.clone();
        let mut h = t.scope(norm1, || self.norm1.forward(t, &x));
        drop(x);
        let (out, _weights) = t.scope(self.family.attention(), || self.attention.forward(t, attn, mask, h));
        h = t.dropout(&out, self.dropout);
        drop(out);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = t.scope(norm2, || self.norm2.forward(t, &h));
        h = t.scope("mlp", || self.mlp.forward(t, &h));
        h = t.dropout(&h, self.dropout);
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &BlockConfig) -> Self {
        let width = c.shape.hidden;
        let qkv = |name| Linear::new(b, name, width, width, c.qkv_bias);
        let (q_proj, k_proj, v_proj) = if c.family == BlockFamily::Vit {
            (qkv("q_proj"), qkv("k_proj"), qkv("v_proj"))
        } else {
            let (k, v) = (qkv("k_proj"), qkv("v_proj"));
            (qkv("q_proj"), k, v)
        };
        Self {
            family: c.family,
            q_proj,
            k_proj,
            v_proj,
            out_proj: Linear::new(b, c.family.out_proj(), width, width, true),
            heads: c.shape.heads,
            dropout: c.attention_dropout,
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, mask: Option<&Mask>, x: Tensor) -> (Tensor, Option<Tensor>) {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
        let late = |x: Tensor| if self.family.splits_late() { heads(x) } else { x };
        let early = |x: Tensor| if self.family.splits_late() { x } else { heads(x) };
        let q = early(t.scope("q_proj", || self.q_proj.forward(t, &x)));
        let k = early(t.scope("k_proj", || self.k_proj.forward(t, &x)));
        let v = early(t.scope("v_proj", || self.v_proj.forward(t, &x)));
        let (q, k, v) = (late(q), late(k), late(v));
        let call = AttentionCall {
            q: &q,
            k: &k,
            v: &v,
            mask,
            dropout: self.dropout,
            softmax: Some(DType::F32),
        };
        let (mut out, weights) = nn::attention(t, attn, &call);
        out = t.reshape(&out, [batch, seq, hidden]);
        out = t.scope(self.family.out_proj(), || self.out_proj.forward(t, &out));
        (out, weights)
    }
}

impl Mlp {
    fn new(b: &Builder, c: &BlockConfig) -> Self {
        let EncoderShape {
            hidden, intermediate, ..
        } = c.shape;
        Self {
            fc1: Linear::new(b, "fc1", hidden, intermediate, true),
            fc2: Linear::new(b, "fc2", intermediate, hidden, true),
            activation: c.activation,
        }
    }

    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = t.scope("fc1", || self.fc1.forward(t, x));
        h = nn::activate(t, self.activation, h);
        t.scope("fc2", || self.fc2.forward(t, &h))
    }
}
