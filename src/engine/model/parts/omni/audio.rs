//! Parameters of the audio encoders of Qwen's Omni models
//! (`transformers/models/{qwen2_5_omni,qwen3_omni_moe}/modeling_*.py`): no simulated step has sound.

use crate::dtype::DType;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::parts::sinusoids::sinusoids;
use crate::nn::{Builder, Embedding, LayerNorm, Linear};
use crate::tape::Tensor;

/// An audio encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioConfig {
    /// Blocks.
    pub layers: u64,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Frequency bands of its input.
    pub bands: u64,
    /// Entries of the table of sinusoidal positions.
    pub positions: u64,
    /// Width of its output.
    pub output: u64,
    /// Channels of the image convolutions that shorten the input of Qwen3-Omni; `None` where convolutions along time do.
    pub channels: Option<u64>,
}

impl AudioConfig {
    /// Reads an encoder; `channels` is the default number of channels of its image convolutions, if it has some.
    pub(crate) fn read(s: &Section, channels: Option<u64>) -> Result<Self, ModelError> {
        let width = s.size_of_either(["d_model", "hidden_size"], 1280, limits::WIDTH)?;
        let heads = ["encoder_attention_heads", "num_attention_heads"];
        let heads = s.size_of_either(heads, 20, limits::HEADS)?;
        s.divide(("d_model", width), ("encoder_attention_heads", heads))?;
        s.divide(("d_model", width), ("halves of a sinusoid", 2))?;
        s.activation("activation_function", Activation::Gelu)?;
        let intermediate = ["encoder_ffn_dim", "intermediate_size"];
        let channels = match channels {
            Some(default) => Some(s.size_or("downsample_hidden_size", default, limits::WIDTH)?),
            None => None,
        };
        Ok(Self {
            layers: s.size_of_either(["encoder_layers", "num_hidden_layers"], 32, limits::LAYERS)?,
            width,
            intermediate: s.size_of_either(intermediate, 5120, limits::WIDTH * 4)?,
            bands: s.size_or("num_mel_bins", 128, limits::COUNT)?,
            positions: s.size_or("max_source_positions", 1500, limits::WIDTH)?,
            output: s.size_or("output_dim", 3584, limits::WIDTH)?,
            channels,
        })
    }

    /// Makes the parameters of the module under construction; returns its table of positions.
    pub(super) fn make(&self, b: &Builder) -> Tensor {
        match self.channels {
            None => self.make_along_time(b),
            Some(channels) => self.make_of_images(b, channels),
        }
    }

    /// `Qwen2_5OmniAudioEncoder`.
    fn make_along_time(&self, b: &Builder) -> Tensor {
        let conv = |name, input| {
            b.tape().scope(name, || {
                b.weight("weight", [self.width, input, 3]);
                b.weight("bias", [self.width]);
            });
        };
        conv("conv1", self.bands);
        conv("conv2", self.width);
        let table = self.positions(b);
        Embedding::new(b, "audio_bos_eos_token", 2, self.output);
        self.blocks(b);
        Linear::new(b, "proj", self.width, self.output, true);
        table
    }

    /// `Qwen3OmniMoeAudioEncoder`.
    fn make_of_images(&self, b: &Builder, channels: u64) -> Tensor {
        let conv = |name, input| {
            b.tape().scope(name, || {
                b.weight("weight", [channels, input, 3, 3]);
                b.weight("bias", [channels]);
            });
        };
        let table = self.positions(b);
        self.blocks(b);
        conv("conv2d1", 1);
        conv("conv2d2", channels);
        conv("conv2d3", channels);
        let bands = self.bands.div_ceil(2).div_ceil(2);
        Linear::new(b, "conv_out", channels * bands.div_ceil(2), self.width, false);
        Linear::new(b, "proj1", self.width, self.width, true);
        Linear::new(b, "proj2", self.width, self.output, true);
        table
    }

    /// The blocks, and the norm after them.
    fn blocks(&self, b: &Builder) {
        for i in 0..self.layers as usize {
            b.tape().layer("layers", i, || {
                b.tape().scope("self_attn", || {
                    for (name, bias) in [
                        // `Qwen3OmniMoeAudioAttention` alone has it.
                        ("k_proj", self.channels.is_some()),
                        ("v_proj", true),
                        ("q_proj", true),
                        ("out_proj", true),
                    ] {
                        Linear::new(b, name, self.width, self.width, bias);
                    }
                });
                LayerNorm::new(b, "self_attn_layer_norm", self.width);
                Linear::new(b, "fc1", self.width, self.intermediate, true);
                Linear::new(b, "fc2", self.intermediate, self.width, true);
                LayerNorm::new(b, "final_layer_norm", self.width);
            });
        }
        LayerNorm::new(b, "ln_post", self.width);
    }

    /// `SinusoidsPositionEmbedding`.
    fn positions(&self, b: &Builder) -> Tensor {
        let shape = [self.positions, self.width];
        b.tape().scope("positional_embedding", || {
            sinusoids(b.tape(), DType::F32, shape, || {
                b.buffer("positional_embedding", shape, DType::F32)
            })
        })
    }
}
