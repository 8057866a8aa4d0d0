//! Gemma 4's tower for images (`transformers/models/gemma4/modeling_gemma4.py`).

use std::rc::Rc;

use super::config::{SOFT_TOKENS, VisionTower as Config};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, Linear, Numbered, PowerRmsNorm};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// `Gemma4VisionModel`.
pub struct VisionTower {
    module: Module,
    patch_embedder: PatchEmbedder,
    encoder: Module,
    rotary: AxialRotary,
    layers: Vec<Numbered<Layer>>,
    pooler: Module,
    /// Bias and scale of features.
    standard: Option<[Tensor; 2]>,
}

/// `Gemma4VisionPatchEmbedder`.
struct PatchEmbedder {
    module: Module,
    input_proj: Linear,
    position_embedding_table: Tensor,
}

/// `Gemma4VisionRotaryEmbedding`: half of a head is rotated by the column of a patch, half by its row.
struct AxialRotary {
    module: Module,
    inv_freq: Tensor,
    _original_inv_freq: Tensor,
    head_dim: u64,
}

/// State that all layers share in one forward.
struct Context {
    attn: Attention,
    mask: Option<Mask>,
    cos: Tensor,
    sin: Tensor,
    /// Passed to every layer, so a checkpointed layer keeps it.
    _position_ids: Tensor,
}

/// `Gemma4VisionEncoderLayer`.
struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: PowerRmsNorm,
    post_attention_layernorm: PowerRmsNorm,
    pre_feedforward_layernorm: PowerRmsNorm,
    post_feedforward_layernorm: PowerRmsNorm,
}

struct SelfAttention {
    module: Module,
    q_proj: ClippableLinear,
    k_proj: ClippableLinear,
    v_proj: ClippableLinear,
    o_proj: ClippableLinear,
    q_norm: PowerRmsNorm,
    k_norm: PowerRmsNorm,
    v_norm: PowerRmsNorm,
    head_dim: u64,
    dropout: f64,
}

struct Mlp {
    module: Module,
    gate_proj: ClippableLinear,
    up_proj: ClippableLinear,
    down_proj: ClippableLinear,
    activation: Activation,
}

/// `Gemma4ClippableLinear`: a linear layer whose input and output are clamped between limits that are buffers.
pub struct ClippableLinear {
    module: Module,
    linear: Linear,
    limits: Vec<Tensor>,
}

impl ClippableLinear {
    pub fn new(b: &Builder, name: &'static str, [input, output]: [u64; 2], clips: bool) -> Self {
        let limits: &[&str] = match clips {
            true => &["input_min", "input_max", "output_min", "output_max"],
            false => &[],
        };
        b.tape().scope(name, || Self {
            module: b.module(),
            linear: Linear::new(b, "linear", input, output, false),
            limits: limits.iter().map(|name| b.buffer(name, [], b.dtype())).collect(),
        })
    }

    /// [.., input] → [.., output]. Backward of a clamp compares in place (`clamp_backward` in
    /// `torch/csrc/autograd/FunctionsManual.cpp`); under a recorder's dispatch mode it makes one more tensor.
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            if self.limits.is_empty() {
                return self.linear.call(t, x);
            }
            let mut h = t.clamp_between(x);
            h = self.linear.call(t, &h);
            t.clamp_between(&h)
        })
    }
}

impl VisionTower {
    pub fn new(b: &Builder, c: &Config) -> Self {
        let t = b.tape();
        let patch_embedder = t.scope("patch_embedder", || PatchEmbedder::new(b, c));
        let (encoder, rotary, layers) = t.scope("encoder", || {
            let rotary = t.scope("rotary_emb", || AxialRotary::new(b, c.head_dim));
            let layers = (0..c.layers as usize).map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c))));
            (b.module(), rotary, layers.collect())
        });
        Self {
            module: b.module(),
            patch_embedder,
            encoder,
            rotary,
            layers,
            pooler: t.scope("pooler", || b.module()),
            standard: c
                .standardizes
                .then(|| ["std_bias", "std_scale"].map(|name| b.buffer(name, [c.hidden], b.dtype()))),
        }
    }

    /// Patches [images, patches, elements] and their places [images, patches, 2] → features [tokens, hidden] of the
    /// `valid` tokens of all images; `full` if no patch is padding.
    pub fn call(&self, t: &Tape, run: &Run, pixels: &Tensor, places: &Tensor, (valid, full): (u64, bool)) -> Tensor {
        self.module.call(t, || {
            let padding = {
                let axes = t.compute(places, DType::Bool, "axes of padding");
                let padding = t.all_of(&axes, 2);
                drop(axes);
                padding
            };
            let embeds = self.patch_embedder.call(t, pixels, places, &padding);
            let encoded = {
                let valid_patches = t.compute(&padding, DType::Bool, "patches that are no padding");
                self.encode(t, run, &embeds, places, (&valid_patches, full))
            };
            let (mut h, mask) = self.pool(t, &encoded, places, &padding);
            h = t.index_rows(&h, &mask, valid);
            if let Some([bias, scale]) = &self.standard {
                let centred = {
                    let bias = t.to_dtype(bias, DType::F32);
                    t.sub(&h, &bias)
                };
                let scale = t.to_dtype(scale, DType::F32);
                h = t.mul(&centred, &scale);
            }
            h = t.to_dtype(&h, embeds.dtype());
            drop((mask, encoded, embeds, padding));
            h
        })
    }

    /// `Gemma4VisionEncoder`.
    fn encode(&self, t: &Tape, run: &Run, embeds: &Tensor, places: &Tensor, (valid, full): (&Tensor, bool)) -> Tensor {
        self.encoder.call(t, || {
            let mask = nn::patch_mask(t, run.attn, embeds, valid, full);
            let (cos, sin) = self.rotary.call(t, embeds, places);
            let context = Rc::new(Context {
                attn: run.attn,
                mask,
                cos,
                sin,
                _position_ids: places.clone(),
            });
            let mut h = embeds.clone();
            for layer in &self.layers {
                let (block, context) = (layer.clone(), context.clone());
                let forward = move |t: &Tape, x: Tensor| block.forward(t, &context, x);
                h = run.block(t, layer, h.clone(), forward);
            }
            h
        })
    }

    /// `Gemma4VisionPooler`: the mean of each square of patches, times a number, in fp32 [images, tokens, hidden], and
    /// which of the tokens are of patches [images, tokens].
    fn pool(&self, t: &Tape, h: &Tensor, places: &Tensor, padding: &Tensor) -> (Tensor, Tensor) {
        self.pooler.call(t, || {
            let [images, patches] = [h.size(0), h.size(1)];
            let h = t.masked_fill(h, &t.unsqueeze(padding, 2));
            if patches == SOFT_TOKENS {
                let wide = t.to_dtype(&h, DType::F32);
                return (t.scale(&wide), padding.clone());
            }
            let (pooled, mask) = {
                let clamped = t.compute(places, DType::I64, "places from 0");
                let columns = {
                    let last = t.max_last(&t.select(&clamped, 2));
                    t.compute(&last, DType::I64, "columns")
                };
                let squares = {
                    let divided = t.compute(&clamped, DType::I64, "places of squares");
                    let per_row = t.compute(&columns, DType::I64, "squares of a row");
                    let before = t.empty([images, patches], DType::I64, "squares of rows before");
                    drop(per_row);
                    let squares = t.empty([images, patches], DType::I64, "squares of patches");
                    drop((before, divided));
                    squares
                };
                let weights = {
                    let of = [images, patches, SOFT_TOKENS];
                    let wide = {
                        let one_hot = t.empty(of, DType::I64, "squares, one hot");
                        t.compute(&one_hot, DType::F32, "squares, one hot, as float")
                    };
                    t.compute(&wide, DType::F32, "weights of patches")
                };
                let summed = {
                    let wide = t.to_dtype(&h, DType::F32);
                    t.matmul(&t.transpose(&weights, 1, 2), &wide)
                };
                let mask = {
                    let unused = {
                        let zero = t.compute(&weights, DType::Bool, "weights that are 0");
                        let unused = t.all_of(&zero, 1);
                        drop(zero);
                        unused
                    };
                    t.compute(&unused, DType::Bool, "tokens of patches")
                };
                let pooled = t.to_dtype(&summed, h.dtype());
                drop((summed, weights, squares, columns, clamped));
                (pooled, mask)
            };
            drop(h);
            let wide = t.to_dtype(&pooled, DType::F32);
            (t.scale(&wide), mask)
        })
    }
}

impl PatchEmbedder {
    fn new(b: &Builder, c: &Config) -> Self {
        Self {
            module: b.module(),
            input_proj: Linear::new(b, "input_proj", c.elements(), c.hidden, false),
            position_embedding_table: b.weight("position_embedding_table", [2, c.positions, c.hidden]),
        }
    }

    fn call(&self, t: &Tape, pixels: &Tensor, places: &Tensor, padding: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut scaled = {
                let centred = t.compute(pixels, pixels.dtype(), "pixels around 0");
                t.compute(&centred, pixels.dtype(), "pixels from -1 to 1")
            };
            scaled = t.to_dtype(&scaled, self.position_embedding_table.dtype());
            let h = self.input_proj.call(t, &scaled);
            let positions = self.positions(t, places, padding);
            let out = t.add(&h, &positions);
            drop((positions, h, scaled));
            out
        })
    }

    /// `_position_embeddings`: the sum of those of a patch's column and row, 0 for padding.
    fn positions(&self, t: &Tape, places: &Tensor, padding: &Tensor) -> Tensor {
        let clamped = t.compute(places, DType::I64, "places from 0");
        let embedded = || {
            let table = t.select(&self.position_embedding_table, 0);
            t.embedding(&table, &t.select(&clamped, 2))
        };
        let (of_column, of_row) = (embedded(), embedded());
        let mut positions = t.add(&of_column, &of_row);
        positions = t.zero_where(&t.unsqueeze(padding, 2), &positions);
        drop((of_row, of_column, clamped));
        positions
    }
}

impl AxialRotary {
    fn new(b: &Builder, head_dim: u64) -> Self {
        let n = head_dim / 4;
        let inv_freq = nn::inverse_frequencies(b.tape(), n, || b.buffer("inv_freq", [n], DType::F32));
        Self {
            module: b.module(),
            _original_inv_freq: b.buffer("original_inv_freq", [n], DType::F32),
            inv_freq,
            head_dim,
        }
    }

    /// Cosines and sines, [images, patches, head_dim] in the type of `x`.
    fn call(&self, t: &Tape, x: &Tensor, places: &Tensor) -> (Tensor, Tensor) {
        self.module.call(t, || {
            t.no_grad(|| {
                let frequencies = t.view(&self.inv_freq, [1, self.head_dim / 4]);
                let expanded = t.unsqueeze(&t.compute(places, DType::F32, "places as float"), 3);
                let freqs = t.autocast(None, || t.matmul(&expanded, &frequencies));
                let wave = |name| {
                    let wave = t.compute(&freqs, DType::F32, name);
                    t.compute(&wave, DType::F32, "times attention scaling")
                };
                let [mut cos, mut sin] = ["cos", "sin"].map(wave);
                let both_axes = |wave: &Tensor| {
                    let axis = t.select(wave, 2);
                    t.cat(&[&axis, &axis, &axis, &axis], 2)
                };
                cos = both_axes(&cos);
                sin = both_axes(&sin);
                let waves = (t.to_dtype(&cos, x.dtype()), t.to_dtype(&sin, x.dtype()));
                drop((sin, cos, freqs, expanded));
                waves
            })
        })
    }
}

impl Layer {
    fn new(b: &Builder, c: &Config) -> Self {
        let t = b.tape();
        let norm = |name| PowerRmsNorm::new(b, name, c.hidden);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp::new(b, c)),
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
            pre_feedforward_layernorm: norm("pre_feedforward_layernorm"),
            post_feedforward_layernorm: norm("post_feedforward_layernorm"),
        }
    }

    fn forward(&self, t: &Tape, context: &Context, x: Tensor) -> Tensor {
        let mut residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (attended, _weights) = self.self_attn.call(t, context, h);
        h = self.post_attention_layernorm.call(t, &attended);
        drop(attended);
        h = t.add(&residual, &h);
        residual = h.clone();
        h = self.pre_feedforward_layernorm.call(t, &h);
        h = self.mlp.call(t, &h);
        h = self.post_feedforward_layernorm.call(t, &h);
        h = t.add(&residual, &h);
        drop(residual);
        h
    }
}

impl Mlp {
    fn new(b: &Builder, c: &Config) -> Self {
        let linear = |name, widths| ClippableLinear::new(b, name, widths, c.clips);
        Self {
            module: b.module(),
            gate_proj: linear("gate_proj", [c.hidden, c.intermediate]),
            up_proj: linear("up_proj", [c.hidden, c.intermediate]),
            down_proj: linear("down_proj", [c.intermediate, c.hidden]),
            activation: c.activation,
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let product = {
                let gate = self.gate_proj.call(t, x);
                let gate = nn::activate(t, self.activation, gate);
                let up = self.up_proj.call(t, x);
                t.mul(&gate, &up)
            };
            self.down_proj.call(t, &product)
        })
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &Config) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let linear = |name, widths| ClippableLinear::new(b, name, widths, c.clips);
        let norm = |name| PowerRmsNorm::new(b, name, c.head_dim);
        Self {
            module: b.module(),
            q_proj: linear("q_proj", [c.hidden, q]),
            k_proj: linear("k_proj", [c.hidden, kv]),
            v_proj: linear("v_proj", [c.hidden, kv]),
            o_proj: linear("o_proj", [q, c.hidden]),
            q_norm: norm("q_norm"),
            k_norm: norm("k_norm"),
            v_norm: PowerRmsNorm::plain("v_norm"),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    /// [images, patches, heads × width] → [images, patches, heads, width].
    fn heads(&self, t: &Tape, x: &Tensor) -> Tensor {
        t.view(x, [x.size(0), x.size(1), x.last() / self.head_dim, self.head_dim])
    }

    /// `apply_multidimensional_rope`: each half of a head is rotated by its own axis.
    fn rotate(&self, t: &Tape, context: &Context, x: &Tensor) -> Tensor {
        let half = self.head_dim / 2;
        let halves = |x: &Tensor| t.split(x, x.dim() - 1, &[half, half]);
        let (parts, cos, sin) = (halves(x), halves(&context.cos), halves(&context.sin));
        let rotated: Vec<Tensor> = (0..2)
            .map(|axis| {
                let (cos, sin) = (t.unsqueeze(&cos[axis], 2), t.unsqueeze(&sin[axis], 2));
                nn::apply_rotary(t, &parts[axis], &cos, &sin)
            })
            .collect();
        t.cat(&[&rotated[0], &rotated[1]], 3)
    }

    fn call(&self, t: &Tape, context: &Context, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [images, patches] = [x.size(0), x.size(1)];
            let rotated = |linear: &ClippableLinear, norm: &PowerRmsNorm| {
                let mut states = self.heads(t, &linear.call(t, &x));
                states = norm.call(t, &states);
                states = self.rotate(t, context, &states);
                t.transpose(&states, 1, 2)
            };
            let q = rotated(&self.q_proj, &self.q_norm);
            let k = rotated(&self.k_proj, &self.k_norm);
            let mut v = self.heads(t, &self.v_proj.call(t, &x));
            v = self.v_norm.call(t, &v);
            v = t.transpose(&v, 1, 2);
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: context.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, context.attn, &call);
            out = t.reshape(&out, [images, patches, q.size(1) * self.head_dim]);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
