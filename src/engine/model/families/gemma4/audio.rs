//! Parameters of Gemma 4's tower for sound (`transformers/models/gemma4/modeling_gemma4.py`). They are loaded with the
//! model; no setup has sound, so that the tower never runs.

use super::config::AudioTower as Config;
use super::tower::ClippableLinear;
use crate::dtype::DType;
use crate::nn::{Builder, LayerNorm, Linear, PowerRmsNorm};
use crate::tape::Tensor;

/// `Gemma4AudioModel`.
pub struct AudioTower {
    _tensors: Vec<Tensor>,
    _layers: Vec<Layer>,
    _norms: [LayerNorm; 2],
    _linears: [Linear; 2],
}

/// `Gemma4AudioLayer`.
struct Layer {
    _linears: Vec<ClippableLinear>,
    _relative_k_proj: Linear,
    _tensors: [Tensor; 3],
    _norms: Vec<PowerRmsNorm>,
}

impl AudioTower {
    pub fn new(b: &Builder, c: &Config) -> Self {
        let t = b.tape();
        let mut tensors = Vec::new();
        let (norms, input) = t.scope("subsample_conv_projection", || {
            let mut convolution = |name, [input, output]: [u64; 2]| {
                t.scope(name, || {
                    tensors.push(b.weight("conv.weight", [output, input, 3, 3]));
                    LayerNorm::without_bias(b, "norm", output)
                })
            };
            let norms = [
                convolution("layer0", [1, c.channels[0]]),
                convolution("layer1", c.channels),
            ];
            // The constructor takes the channels of the first convolution for the frequencies of the sound, of which
            // both leave a quarter.
            let width = c.channels[0] / 4 * c.channels[1];
            (norms, Linear::new(b, "input_proj_linear", width, c.hidden, false))
        });
        tensors.push(b.buffer("rel_pos_enc.inv_timescales", [1, 1, c.hidden / 2], DType::F32));
        let layers = (0..c.layers as usize).map(|i| t.layer("layers", i, || Layer::new(b, c)));
        let layers = layers.collect();
        let output = Linear::new(b, "output_proj", c.hidden, c.output, true);
        Self {
            _tensors: tensors,
            _layers: layers,
            _norms: norms,
            _linears: [input, output],
        }
    }
}

impl Layer {
    fn new(b: &Builder, c: &Config) -> Self {
        let (t, hidden) = (b.tape(), c.hidden);
        let linear = |name, input, output| ClippableLinear::new(b, name, [input, output], c.clips);
        let norm = |name| PowerRmsNorm::new(b, name, hidden);
        let (mut linears, mut norms) = (Vec::new(), Vec::new());
        for name in ["feed_forward1", "feed_forward2"] {
            t.scope(name, || {
                linears.push(linear("ffw_layer_1", hidden, 4 * hidden));
                linears.push(linear("ffw_layer_2", 4 * hidden, hidden));
                norms.extend(["pre_layer_norm", "post_layer_norm"].map(norm));
            });
        }
        let (relative_k_proj, scale, softcap) = t.scope("self_attn", || {
            linears.extend(["q_proj", "k_proj", "v_proj", "post"].map(|name| linear(name, hidden, hidden)));
            (
                Linear::new(b, "relative_k_proj", hidden, hidden, false),
                b.weight("per_dim_scale", [hidden / c.heads]),
                b.buffer("softcap", [], b.dtype()),
            )
        });
        let depthwise = t.scope("lconv1d", || {
            linears.push(linear("linear_start", hidden, 2 * hidden));
            linears.push(linear("linear_end", hidden, hidden));
            let depthwise = b.weight("depthwise_conv1d.weight", [hidden, 1, c.kernel]);
            norms.extend(["pre_layer_norm", "conv_norm"].map(norm));
            depthwise
        });
        norms.extend(["norm_pre_attn", "norm_post_attn", "norm_out"].map(norm));
        Self {
            _linears: linears,
            _relative_k_proj: relative_k_proj,
            _tensors: [scale, softcap, depthwise],
            _norms: norms,
        }
    }
}
