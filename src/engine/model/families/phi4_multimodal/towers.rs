//! Parameters of the towers of images and of sound, which no text passes.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::nn::Builder;
use crate::tape::Tensor;

/// Sizes of the tower of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisionSizes {
    hidden: u64,
    intermediate: u64,
    layers: u64,
    channels: u64,
    side: u64,
    patch: u64,
}

/// Sizes of the tower of sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioSizes {
    hidden: u64,
    intermediate: u64,
    blocks: u64,
    heads: u64,
    pointwise: u64,
    separable: u64,
    multiplier: u64,
    kernel: u64,
    input: u64,
    /// Convolutions that halve the frames.
    halvings: u32,
    buckets: u64,
    channels: u64,
    /// Inputs that the projections behind the tower join.
    joined: u64,
}

impl VisionSizes {
    pub(super) fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            hidden: s.size_or("hidden_size", 1152, limits::WIDTH)?,
            intermediate: s.size_or("intermediate_size", 4304, limits::WIDTH * 4)?,
            layers: s.size_or("num_hidden_layers", 27, limits::LAYERS)?,
            channels: s.size_or("num_channels", 3, limits::COUNT)?,
            side: s.side("image_size", 448, limits::WIDTH)?,
            patch: s.side("patch_size", 14, limits::WIDTH)?,
        })
    }
}

impl AudioSizes {
    pub(super) fn read(s: &Section) -> Result<Self, ModelError> {
        let width = |key, default| s.size_or(key, default, limits::WIDTH);
        let distance = width("bias_max_distance", 1000)?;
        let reduction = s.size_or("time_reduction", 8, limits::COUNT)?;
        Ok(Self {
            hidden: width("hidden_size", 1024)?,
            intermediate: width("intermediate_size", 1536)?,
            blocks: s.size_or("num_blocks", 24, limits::LAYERS)?,
            heads: s.size_or("num_attention_heads", 16, limits::HEADS)?,
            pointwise: width("ext_pw_out_channel", 1024)?,
            separable: width("depthwise_separable_out_channel", 1024)?,
            multiplier: width("depthwise_multiplier", 1)?,
            kernel: width("kernel_size", 3)?,
            input: width("input_size", 80)?,
            halvings: reduction.ilog2(),
            buckets: if s.flag("bias_symmetric", false)? {
                distance
            } else {
                2 * distance
            },
            channels: width("nemo_conv_channels", 1024)?,
            joined: width("downsample_rate", 1)?,
        })
    }
}

/// Parameters that no text passes.
pub(super) struct Towers {
    _params: Vec<Tensor>,
}

/// Makes parameters and keeps them.
struct Maker<'a> {
    b: &'a Builder,
    made: Vec<Tensor>,
}

impl Maker<'_> {
    fn within(&mut self, name: &'static str, make: impl FnOnce(&mut Self)) {
        let tape = self.b.tape();
        tape.scope(name, || make(self));
    }

    fn numbered(&mut self, name: &'static str, count: u64, mut make: impl FnMut(&mut Self)) {
        let tape = self.b.tape();
        for i in 0..count as usize {
            tape.layer(name, i, || make(self));
        }
    }

    fn weight(&mut self, name: &'static str, shape: &[u64]) {
        let made = self.b.weight(name, shape);
        self.made.push(made);
    }

    /// A module with a weight of this shape and a bias of its outputs.
    fn map(&mut self, name: &'static str, shape: &[u64]) {
        self.within(name, |m| {
            m.weight("weight", shape);
            m.weight("bias", &shape[..1]);
        });
    }

    fn maps(&mut self, names: &[&'static str], shape: &[u64]) {
        for name in names {
            self.map(name, shape);
        }
    }
}

impl Towers {
    /// Makes both in `Phi4MultimodalFeatureEmbedding`, whose outputs have `width` elements.
    pub fn new(b: &Builder, width: u64, vision: &VisionSizes, audio: &AudioSizes) -> Self {
        let mut m = Maker { b, made: Vec::new() };
        m.within("image_embed", |m| {
            m.weight("global_img_feature_extensor", &[1, 1, vision.hidden]);
            m.weight("sub_img_feature_extensor", &[1, 1, 1, vision.hidden]);
            m.within("img_processor", |m| of_images(m, vision));
            m.map("img_projection_up", &[width, vision.hidden]);
            m.map("img_projection_down", &[width, width]);
        });
        m.within("audio_embed", |m| {
            m.within("encoder", |m| of_sound(m, audio));
            for [up, down] in [
                ["up_proj_for_speech", "down_proj_for_speech"],
                ["up_proj_for_vision_speech", "down_proj_for_vision_speech"],
            ] {
                m.map(up, &[width, audio.hidden * audio.joined]);
                m.map(down, &[width, width]);
            }
        });
        Self { _params: m.made }
    }
}

/// `Phi4MultimodalVisionModel`.
fn of_images(m: &mut Maker<'_>, c: &VisionSizes) {
    let h = c.hidden;
    let mlp = |m: &mut Maker<'_>| {
        m.within("mlp", |m| {
            m.map("fc1", &[c.intermediate, h]);
            m.map("fc2", &[h, c.intermediate]);
        });
    };
    m.within("embeddings", |m| {
        m.map("patch_embedding", &[h, c.channels, c.patch, c.patch]);
        let patches = (c.side / c.patch) * (c.side / c.patch);
        m.within("position_embedding", |m| m.weight("weight", &[patches, h]));
    });
    m.within("encoder", |m| {
        m.numbered("layers", c.layers, |m| {
            m.map("layer_norm1", &[h]);
            m.within("self_attn", |m| {
                m.maps(&["k_proj", "v_proj", "q_proj", "out_proj"], &[h, h])
            });
            m.map("layer_norm2", &[h]);
            mlp(m);
        });
    });
    m.map("post_layernorm", &[h]);
    m.within("head", |m| {
        m.weight("probe", &[1, 1, h]);
        m.within("attention", |m| {
            m.weight("in_proj_weight", &[3 * h, h]);
            m.weight("in_proj_bias", &[3 * h]);
            m.map("out_proj", &[h, h]);
        });
        m.map("layernorm", &[h]);
        mlp(m);
    });
}

/// `Phi4MultimodalAudioModel`.
fn of_sound(m: &mut Maker<'_>, c: &AudioSizes) {
    let h = c.hidden;
    m.within("encoder_embedding", |m| {
        for name in ["global_mean", "global_invstd"] {
            let made = m.b.buffer(name, [c.input], m.b.dtype());
            m.made.push(made);
        }
    });
    m.within("embed", |m| {
        let wide = c.channels;
        m.within("conv", |m| {
            m.map("0", &[wide, 1, 3, 3]);
            for _ in 1..c.halvings {
                m.map("dw", &[wide, 1, 3, 3]);
                m.map("pw", &[wide, wide, 1, 1]);
            }
        });
        let frames = (0..c.halvings).fold(c.input, |frames, _| frames.div_ceil(2));
        m.map("out", &[h, wide * frames]);
    });
    m.within("relative_attention_bias_layer", |m| {
        m.within("bias_values", |m| m.weight("weight", &[c.buckets, c.heads]));
    });
    m.numbered("encoders", c.blocks, |m| {
        let feed_forward = |m: &mut Maker<'_>, name| {
            m.within(name, |m| {
                m.map("layer_norm", &[h]);
                m.map("gate_up_proj", &[2 * c.intermediate, h]);
                m.map("down_proj", &[h, c.intermediate]);
            });
        };
        feed_forward(m, "feed_forward_in");
        let inner = h / c.heads * c.heads;
        m.within("self_attn", |m| {
            m.maps(&["q_proj", "k_proj", "v_proj"], &[inner, h]);
            m.map("o_proj", &[h, inner]);
        });
        m.within("conv", |m| {
            m.map("layer_norm", &[h]);
            m.within("glu", |m| {
                m.weight("b1", &[1, c.pointwise, 1]);
                m.weight("b2", &[1, c.pointwise, 1]);
                m.map("ext_pw_conv_1d", &[2 * c.pointwise, h, 1]);
            });
            m.within("dw_sep_conv_1d", |m| {
                m.map("dw_conv", &[h * c.multiplier, 1, c.kernel]);
                m.map("pw_conv", &[c.separable, h * c.multiplier, 1]);
            });
            m.map("ext_pw_conv_1d", &[c.pointwise, h, 1]);
        });
        feed_forward(m, "feed_forward_out");
        m.map("layer_norm_att", &[h]);
        m.map("layer_norm", &[h]);
    });
}
