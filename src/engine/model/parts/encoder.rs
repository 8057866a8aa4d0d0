//! The pre-norm block that CLIP, SigLIP, Idefics3 and ViT share: attention and an MLP, each after a layer norm and with
//! a residual connection. Families differ in its form ([`BlockForm`]).

use std::rc::Rc;

use crate::dtype::DType;
use crate::model::config::{Activation, EncoderShape};
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// Sizes and settings that the blocks of a tower share.
pub struct BlockConfig {
    pub form: &'static BlockForm,
    pub shape: EncoderShape,
    pub activation: Activation,
    pub attention_dropout: f64,
    /// Dropout after attention and after the MLP.
    pub dropout: f64,
    /// True if query, key and value projections have biases.
    pub qkv_bias: bool,
}

/// Form of a family's blocks: names of their parts, and the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockForm {
    /// Name of attention.
    pub attention: &'static str,
    /// Name of its output projection.
    pub out_proj: &'static str,
    /// Names of the norms before attention and before the MLP.
    pub norms: [&'static str; 2],
    /// Order in which the parts of a block are made.
    pub order: BlockOrder,
    /// True if the projection of queries is made before those of keys and values, false if after.
    pub query_first: bool,
    /// True if heads are split when all three projections are done, not after each.
    pub splits_late: bool,
    /// True if eager attention computes its softmax in fp32.
    pub wide_softmax: bool,
}

/// Order in which the parts of a block are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOrder {
    /// Attention, its norm, MLP, its norm.
    PartsFirst,
    /// Norm before attention, attention, norm before the MLP, MLP.
    NormsFirst,
    /// Attention, both norms, MLP.
    NormsBetween,
}

/// One block.
pub struct Block {
    attention: SelfAttention,
    norm1: LayerNorm,
    mlp: Mlp,
    norm2: LayerNorm,
    dropout: f64,
}

/// Attention over all positions of a sample.
struct SelfAttention {
    module: Module,
    form: &'static BlockForm,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    out_proj: Linear,
    heads: u64,
    dropout: f64,
}

/// Two linear layers around an activation.
pub struct Mlp {
    module: Module,
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
    blocks: &[Numbered<Block>],
    mask: &SharedMask,
    mut h: Tensor,
    mut see: impl FnMut(&Tensor),
) -> Tensor {
    for block in blocks {
        let (called, mask, attn) = (block.clone(), mask.clone(), run.attn);
        let forward = move |t: &Tape, x: Tensor| called.forward(t, attn, mask.as_deref(), x);
        // The caller of a block holds its input until the block returns.
        h = run.block(t, block, h.clone(), forward);
        see(&h);
    }
    h
}

/// Makes the blocks of a tower as the modules `name.0`, `name.1`, ….
pub fn make_blocks(b: &Builder, name: &'static str, c: &BlockConfig) -> Vec<Numbered<Block>> {
    (0..c.shape.layers as usize)
        .map(|i| Numbered::new(b, name, i, || Rc::new(Block::new(b, c))))
        .collect()
}

impl Block {
    fn new(b: &Builder, c: &BlockConfig) -> Self {
        let [norm1, norm2] = c.form.norms;
        let norm = |name| LayerNorm::new(b, name, c.shape.hidden);
        let attention = || b.tape().scope(c.form.attention, || SelfAttention::new(b, c));
        let mlp = || b.tape().scope("mlp", || Mlp::new(b, c.shape, c.activation));
        let (attention, norm1, norm2, mlp) = match c.form.order {
            BlockOrder::PartsFirst => {
                let (attention, norm1, mlp) = (attention(), norm(norm1), mlp());
                (attention, norm1, norm(norm2), mlp)
            }
            BlockOrder::NormsFirst => {
                let (norm1, attention) = (norm(norm1), attention());
                (attention, norm1, norm(norm2), mlp())
            }
            BlockOrder::NormsBetween => (attention(), norm(norm1), norm(norm2), mlp()),
        };
        Self {
            attention,
            norm1,
            mlp,
            norm2,
            dropout: c.dropout,
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, mask: Option<&Mask>, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.norm1.call(t, &x);
        drop(x);
        let (out, _weights) = self.attention.call(t, attn, mask, h);
        h = t.dropout(&out, self.dropout);
        drop(out);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.norm2.call(t, &h);
        h = self.mlp.call(t, &h);
        h = t.dropout(&h, self.dropout);
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &BlockConfig) -> Self {
        let width = c.shape.hidden;
        let qkv = |name| Linear::new(b, name, width, width, c.qkv_bias);
        let (q_proj, k_proj, v_proj) = if c.form.query_first {
            (qkv("q_proj"), qkv("k_proj"), qkv("v_proj"))
        } else {
            let (k, v) = (qkv("k_proj"), qkv("v_proj"));
            (qkv("q_proj"), k, v)
        };
        Self {
            module: b.module(),
            form: c.form,
            q_proj,
            k_proj,
            v_proj,
            out_proj: Linear::new(b, c.form.out_proj, width, width, true),
            heads: c.shape.heads,
            dropout: c.attention_dropout,
        }
    }

    fn call(&self, t: &Tape, attn: Attention, mask: Option<&Mask>, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
            let late = |x: Tensor| if self.form.splits_late { heads(x) } else { x };
            let early = |x: Tensor| if self.form.splits_late { x } else { heads(x) };
            let q = early(self.q_proj.call(t, &x));
            let k = early(self.k_proj.call(t, &x));
            let v = early(self.v_proj.call(t, &x));
            let (q, k, v) = (late(q), late(k), late(v));
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask,
                dropout: self.dropout,
                softmax: self.form.wide_softmax.then_some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, [batch, seq, hidden]);
            out = self.out_proj.call(t, &out);
            (out, weights)
        })
    }
}

impl Mlp {
    /// Makes the linear layers.
    pub fn new(b: &Builder, shape: EncoderShape, activation: Activation) -> Self {
        let EncoderShape {
            hidden, intermediate, ..
        } = shape;
        Self {
            module: b.module(),
            fc1: Linear::new(b, "fc1", hidden, intermediate, true),
            fc2: Linear::new(b, "fc2", intermediate, hidden, true),
            activation,
        }
    }

    /// [.., hidden] → the same.
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.fc1.call(t, x);
            h = nn::activate(t, self.activation, h);
            self.fc2.call(t, &h)
        })
    }
}
