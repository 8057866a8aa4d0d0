//! Kimi Linear's delta attention, as transformers runs it without flash-linear-attention (`KimiLinearDeltaAttention`).

use super::config::DeltaSizes;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, Builder, DeltaCall, GatedRmsNorm, KvCache, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `KimiLinearDeltaAttention`.
pub struct DeltaAttention {
    module: Module,
    /// Projections to queries, keys and values.
    projections: [Linear; 3],
    /// Weight of `conv1d`, [channels, 1, kernel].
    conv1d: Tensor,
    forget_gate: ForgetGate,
    b_proj: Linear,
    g_a_proj: Linear,
    g_b_proj: Linear,
    o_norm: GatedRmsNorm,
    o_proj: Linear,
    sizes: DeltaSizes,
    activation: Activation,
    /// True if the package causal-conv1d runs the convolution.
    by_package: bool,
}

/// `KimiLinearForgetGate`.
struct ForgetGate {
    module: Module,
    dt_bias: Tensor,
    a_log: Tensor,
    f_a_proj: Linear,
    f_b_proj: Linear,
}

impl DeltaAttention {
    pub fn new(b: &Builder, (hidden, activation): (u64, Activation), d: DeltaSizes) -> Self {
        let (t, inner) = (b.tape(), d.heads * d.width);
        let channels = 3 * inner;
        let linear = |name, input, output| Linear::new(b, name, input, output, false);
        Self {
            module: b.module(),
            projections: ["q_proj", "k_proj", "v_proj"].map(|name| Linear::adapted(b, name, hidden, inner, false)),
            conv1d: t.scope("conv1d", || b.weight("weight", [channels, 1, d.kernel])),
            forget_gate: t.scope("forget_gate", || ForgetGate::new(b, hidden, d)),
            b_proj: linear("b_proj", hidden, d.heads),
            g_a_proj: linear("g_a_proj", hidden, d.width),
            g_b_proj: linear("g_b_proj", d.width, inner),
            o_norm: GatedRmsNorm::by_sigmoids(b, "o_norm", d.width),
            o_proj: Linear::adapted(b, "o_proj", inner, hidden, false),
            sizes: d,
            activation,
            by_package: b.has_causal_conv1d([channels, d.kernel], activation == Activation::Silu),
        }
    }

    /// [batch, seq, hidden] → the same; `padding` [batch, seq] marks positions that are not padding.
    pub fn call(&self, t: &Tape, padding: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let d = &self.sizes;
            let x = match padding {
                Some(padding) => t.mul(x, &t.unsqueeze(padding, 2)),
                None => x.clone(),
            };
            let [batch, seq, inner] = [x.size(0), x.size(1), d.heads * d.width];
            let mut mixed = {
                let parts = self.projections.each_ref().map(|proj| proj.call(t, &x));
                t.transpose(&t.cat(&parts.each_ref(), 2), 1, 2)
            };
            if let Some(cache) = cache {
                cache.keep(t.empty([batch, mixed.size(1), d.kernel], mixed.dtype(), "convolution state"));
            }
            mixed = self.convolve(t, &mixed);
            mixed = t.narrow(&mixed, 2, seq);
            let by_head = |x: &Tensor| t.view(x, [batch, seq, d.heads, d.width]);
            let parts = t.split(&t.transpose(&mixed, 1, 2), 2, &[inner; 3]);
            let [query, key, value] = [0, 1, 2].map(|i| by_head(&parts[i]));
            drop(parts);
            let decay = self.forget_gate.call(t, &x, [batch, seq, d.heads, d.width]);
            let beta = {
                let rate = self.b_proj.call(t, &x);
                t.sigmoid(&rate)
            };
            let call = DeltaCall {
                query: &query,
                key: &key,
                value: &value,
                decay: &decay,
                beta: &beta,
                returns_state: cache.is_some(),
            };
            let (out, state) = nn::chunk_kimi_delta_attention(t, &call);
            if let (Some(cache), Some(state)) = (cache, &state) {
                cache.keep(t.empty_like(state, DType::F32, "recurrent state"));
            }
            let gate = {
                let low = self.g_a_proj.call(t, &x);
                by_head(&self.g_b_proj.call(t, &low))
            };
            let normed = {
                let normed = self.o_norm.call(t, &out, &gate);
                t.reshape(&normed, [batch, seq, inner])
            };
            self.o_proj.call(t, &normed)
        })
    }

    /// `causal_conv1d_fn`, [batch, channels, seq] → the same.
    fn convolve(&self, t: &Tape, x: &Tensor) -> Tensor {
        let weight = t.squeeze(&self.conv1d, 1);
        if self.by_package {
            return t.causal_conv1d(x, &weight, None);
        }
        let mut out = {
            let cast = t.to_dtype(x, weight.dtype());
            let out = t.conv1d_depthwise(&cast, &t.unsqueeze(&weight, 1), None, self.sizes.kernel - 1);
            t.slice(&out, 2, x.size(2))
        };
        out = nn::activate(t, self.activation, out);
        t.to_dtype(&out, x.dtype())
    }
}

impl ForgetGate {
    fn new(b: &Builder, hidden: u64, d: DeltaSizes) -> Self {
        let inner = d.heads * d.width;
        let linear = |name, input, output| Linear::new(b, name, input, output, false);
        let maps = || (linear("f_a_proj", hidden, d.width), linear("f_b_proj", d.width, inner));
        // Parameters of the module itself come before those of its modules.
        let ((f_a_proj, f_b_proj), [dt_bias, a_log]) = b.early(maps, || {
            let dt_bias = b.weight("dt_bias", [inner]);
            [dt_bias, b.weight("A_log", [1, 1, d.heads, 1])]
        });
        Self {
            module: b.module(),
            dt_bias,
            a_log,
            f_a_proj,
            f_b_proj,
        }
    }

    /// [batch, seq, hidden] → the decay of each element of each head, in log space and fp32.
    fn call(&self, t: &Tape, x: &Tensor, by_head: [u64; 4]) -> Tensor {
        self.module.call(t, || {
            let in_f32 = |x: &Tensor| t.to_dtype(x, DType::F32);
            let gate = {
                let low = self.f_a_proj.call(t, x);
                self.f_b_proj.call(t, &low)
            };
            let g = {
                let wide = in_f32(&gate);
                let bias = t.view(&in_f32(&self.dt_bias), [1, 1, gate.last()]);
                t.view(&t.add(&wide, &bias), by_head)
            };
            let a_log = in_f32(&self.a_log);
            let rate = t.exp(&a_log);
            let softplus = {
                let is_large = t.compute(&g, DType::Bool, "comparison");
                let log = {
                    let shifted = t.shift(&t.exp(&g));
                    t.log(&shifted)
                };
                t.select_where(&is_large, &g, &log)
            };
            let decay = t.mul(&t.neg(&rate), &softplus);
            drop((softplus, rate, a_log, g, gate));
            decay
        })
    }
}
