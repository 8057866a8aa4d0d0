//! Parameters of Janus' quantizing autoencoder and of what embeds and predicts its codes
//! (`transformers/models/janus/modeling_janus.py`): none of them runs when Janus reads images.

use super::config::VqConfig;
use crate::nn::{Builder, Embedding, Linear};

/// Makes `vqmodel`, `generation_embeddings`, `generation_aligner` and `generation_head`.
pub fn make(b: &Builder, c: &VqConfig) {
    let t = b.tape();
    t.scope("vqmodel", || {
        t.scope("encoder", || encoder(b, c));
        t.scope("quantize", || Embedding::new(b, "embedding", c.codes, c.embed));
        conv(b, "quant_conv", [c.latent, c.embed], 1);
        conv(b, "post_quant_conv", [c.embed, c.latent], 1);
        t.scope("decoder", || decoder(b, c));
    });
    Embedding::new(b, "generation_embeddings", c.codes, c.embed);
    t.scope("generation_aligner", || {
        Linear::new(b, "fc1", c.embed, c.projection, true);
        for i in 1..c.layers {
            t.layer("hidden_layers", i as usize - 1, || {
                b.weight("weight", [c.projection, c.projection]);
                b.weight("bias", [c.projection]);
            });
        }
    });
    t.scope("generation_head", || {
        Linear::new(b, "proj_out", c.head_input, c.projection, true);
        Linear::new(b, "vision_head", c.projection, c.codes, true);
    });
}

/// A convolution of kernel `side` from one number of channels to another.
fn conv(b: &Builder, name: &'static str, [input, output]: [u64; 2], side: u64) {
    b.tape().scope(name, || {
        b.weight("weight", [output, input, side, side]);
        b.weight("bias", [output]);
    });
}

/// A group norm.
fn norm(b: &Builder, name: &'static str, channels: u64) {
    b.tape().scope(name, || {
        b.weight("weight", [channels]);
        b.weight("bias", [channels]);
    });
}

/// `JanusVQVAEResnetBlock`.
fn residual(b: &Builder, [input, output]: [u64; 2]) {
    norm(b, "norm1", input);
    conv(b, "conv1", [input, output], 3);
    norm(b, "norm2", output);
    conv(b, "conv2", [output, output], 3);
    if input != output {
        conv(b, "nin_shortcut", [input, output], 1);
    }
}

/// `JanusVQVAEAttnBlock`.
fn attention(b: &Builder, channels: u64) {
    norm(b, "norm", channels);
    for name in ["q", "k", "v", "proj_out"] {
        conv(b, name, [channels; 2], 1);
    }
}

/// `JanusVQVAEMidBlock`.
fn middle(b: &Builder, channels: u64) {
    let t = b.tape();
    t.scope("mid", || {
        t.scope("block_1", || residual(b, [channels; 2]));
        t.scope("attn_1", || attention(b, channels));
        t.scope("block_2", || residual(b, [channels; 2]));
    });
}

/// Residual blocks of one resolution, and an attention after each if it is the last one.
fn resolution(b: &Builder, blocks: u64, [input, output]: [u64; 2], is_last: bool) {
    let t = b.tape();
    let inputs = |i: u64| if i == 0 { [input, output] } else { [output; 2] };
    for i in 0..blocks {
        t.layer("block", i as usize, || residual(b, inputs(i)));
    }
    for i in (0..blocks).filter(|_| is_last) {
        t.layer("attn", i as usize, || attention(b, output));
    }
}

fn encoder(b: &Builder, c: &VqConfig) {
    let (t, last) = (b.tape(), c.channels.len() - 2);
    conv(b, "conv_in", [c.colours[0], c.channels[0]], 3);
    for i in 0..=last {
        let [input, output] = [c.channels[i], c.channels[i + 1]];
        t.layer("down", i, || {
            resolution(b, c.blocks, [input, output], i == last);
            if i != last {
                t.scope("downsample", || conv(b, "conv", [output; 2], 3));
            }
        });
    }
    let deepest = c.channels[last + 1];
    middle(b, deepest);
    norm(b, "norm_out", deepest);
    conv(b, "conv_out", [deepest, c.encoded], 3);
}

fn decoder(b: &Builder, c: &VqConfig) {
    let (t, last) = (b.tape(), c.channels.len() - 2);
    let mut channels = c.channels[last + 1];
    conv(b, "conv_in", [c.latent, channels], 3);
    middle(b, channels);
    for (place, i) in (0..=last).rev().enumerate() {
        let output = c.channels[i + 1];
        t.layer("up", place, || {
            resolution(b, c.blocks + 1, [channels, output], i == last);
            if i != 0 {
                t.scope("upsample", || conv(b, "conv", [output; 2], 3));
            }
        });
        channels = output;
    }
    norm(b, "norm_out", channels);
    conv(b, "conv_out", [channels, c.colours[1]], 3);
}
