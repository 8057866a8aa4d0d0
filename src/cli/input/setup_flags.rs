//! Flags of a training setup, one for each field, with the keys and values of a case file.

use std::fmt::Display;

use clap::Args;
use vramscope_engine::Setup;
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{
    AdapterType, Attention, Checkpointing, Freeze, Loss, Optimizer, Packing, Precision, Targets, ZeroGrad,
};
use vramscope_plan::search::Entry;

use super::vocabulary;

/// The fields of a [`Setup`] that were given; the others stay as they are.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Training setup")]
pub struct SetupFlags {
    #[arg(long, value_name = "N", help = about("Micro-batch: samples per forward", |s| s.batch))]
    batch: Option<u64>,
    #[arg(long, value_name = "N", help = about("Text positions per sample, image tokens included", |s| s.seq))]
    seq: Option<u64>,
    #[arg(long, value_name = "N", help = about("Images per sample", |s| s.images))]
    images: Option<u64>,
    /// Text positions of each sample where they differ, such as 512,2048,300; batch and seq follow
    #[arg(long, value_name = "N,N,..", value_delimiter = ',')]
    lengths: Option<Vec<u64>>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<Packing>(), help = about("How samples of different lengths are put together", |s| vocabulary::name(&s.packing)))]
    packing: Option<Packing>,
    /// Pixels a side of an image or frame [default: the model's own]
    #[arg(long, value_name = "PIXELS")]
    image: Option<u64>,
    /// Patches of an image before the 2x2 merge (Qwen-VL), such as 24x32 [default: the model's own]
    #[arg(long, value_name = "HxW", value_parser = parse_grid)]
    grid: Option<[u64; 2]>,
    /// Pixels of each image of a sample where they differ, such as 480x640,300x200; images, image and grid follow
    #[arg(long, value_name = "HxW,HxW,..", value_delimiter = ',', value_parser = parse_size)]
    image_sizes: Option<Vec<[u64; 2]>>,
    /// Frames per video (video models) [default: the model's own]
    #[arg(long, value_name = "N")]
    frames: Option<u64>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<Precision>(), help = about("Number format of weights and compute", |s| vocabulary::name(&s.precision)))]
    precision: Option<Precision>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<Optimizer>(), help = about("Optimizer and the form of its step", |s| vocabulary::name(&s.optim)))]
    optim: Option<Optimizer>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<Checkpointing>(), help = about("Activation (gradient) checkpointing: of all blocks or one part's", |s| vocabulary::name(&s.ckpt)))]
    ckpt: Option<Checkpointing>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<Attention>(), help = about("Attention implementation", |s| vocabulary::name(&s.attn)))]
    attn: Option<Attention>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<Freeze>(), help = about("Which part is frozen, or adapters: `lora`, `qlora` on 4-bit weights", |s| vocabulary::name(&s.freeze)))]
    freeze: Option<Freeze>,
    #[arg(long, value_name = "N", help = about("LoRA rank", |s| s.rank))]
    rank: Option<u64>,
    #[arg(long, value_name = "P", help = about("LoRA dropout probability", |s| s.lora_dropout))]
    lora_dropout: Option<f64>,
    #[arg(long, value_name = "NAMES", value_parser = Targets::parse, help = about("Where adapters go: projections, attention, all-linear, or names such as q_proj,v_proj", |s| String::from(s.lora_targets)))]
    lora_targets: Option<Targets>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<AdapterType>(), help = about("Type of the adapters' weights", |s| vocabulary::name(&s.lora_dtype)))]
    lora_dtype: Option<AdapterType>,
    #[arg(long, value_name = "N", help = about("Micro-batches per optimizer step", |s| s.accum))]
    accum: Option<u64>,
    /// Clip gradients at norm 1
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    clip: Option<bool>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<ZeroGrad>(), help = about("What zero_grad leaves of gradients", |s| vocabulary::name(&s.zero_grad)))]
    zero_grad: Option<ZeroGrad>,
    /// Autocast keeps its low-precision copies of weights during forward [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    autocast_cache: Option<bool>,
    /// Keep an exponential moving average of all weights
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    ema: Option<bool>,
    #[arg(long, value_name = "NAME", value_parser = vocabulary::of::<Loss>(), help = about("All logits, or Liger's fused linear cross-entropy", |s| vocabulary::name(&s.loss)))]
    loss: Option<Loss>,
    /// The language model keeps keys and values of every forward, in training too [default: as its config.json says]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    use_cache: Option<bool>,
}

impl SetupFlags {
    /// Returns true if a micro-batch was given.
    pub const fn names_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Returns true if a sequence length was given.
    pub const fn names_seq(&self) -> bool {
        self.seq.is_some()
    }

    /// Takes the sizes that were given, by name, and leaves the rest.
    pub fn take_sizes(&mut self) -> Vec<(String, u64)> {
        let sizes = [
            ("batch", self.batch.take()),
            ("seq", self.seq.take()),
            ("images", self.images.take()),
        ];
        let given = sizes
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        given.collect()
    }

    /// Applies the given flags to a setup.
    pub fn apply(&self, setup: &mut Setup) {
        put(&mut setup.batch, self.batch);
        put(&mut setup.seq, self.seq);
        put(&mut setup.lengths, self.lengths.clone());
        put(&mut setup.packing, self.packing);
        put(&mut setup.images, self.images);
        put(&mut setup.image, self.image.map(Some));
        put(&mut setup.grid, self.grid.map(Some));
        put(&mut setup.image_sizes, self.image_sizes.clone());
        put(&mut setup.frames, self.frames.map(Some));
        put(&mut setup.precision, self.precision);
        put(&mut setup.optim, self.optim);
        put(&mut setup.ckpt, self.ckpt);
        put(&mut setup.attn, self.attn);
        put(&mut setup.freeze, self.freeze);
        put(&mut setup.rank, self.rank);
        put(&mut setup.lora_dropout, self.lora_dropout);
        put(&mut setup.lora_targets, self.lora_targets.clone());
        put(&mut setup.lora_dtype, self.lora_dtype);
        put(&mut setup.accum, self.accum);
        put(&mut setup.clip, self.clip);
        put(&mut setup.zero_grad, self.zero_grad);
        put(&mut setup.autocast_cache, self.autocast_cache);
        put(&mut setup.ema, self.ema);
        put(&mut setup.loss, self.loss);
        put(&mut setup.use_cache, self.use_cache.map(Some));
    }
}

impl SetupFlags {
    /// Settings of a plan that were given as flags, and therefore keep their values.
    pub fn entries(&self) -> Vec<Entry> {
        let given = [
            (Entry::Precision, self.precision.is_some()),
            (Entry::Optim, self.optim.is_some()),
            (Entry::Ckpt, self.ckpt.is_some()),
            (Entry::Attn, self.attn.is_some()),
            (Entry::Freeze, self.freeze.is_some()),
            (Entry::Loss, self.loss.is_some()),
            (Entry::Batch, self.batch.is_some()),
        ];
        given
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(entry, _)| entry)
            .collect()
    }

    /// Given flags that have no effect on a model with these inputs.
    pub fn without_effect(&self, takes: Takes) -> Vec<&'static str> {
        let given = [
            ("--seq", self.seq.is_some() && !takes.text),
            ("--images", self.images.is_some() && !takes.images),
            ("--image", self.image.is_some() && !takes.image),
            ("--grid", self.grid.is_some() && !takes.grid),
            ("--image-sizes", self.image_sizes.is_some() && !takes.parts),
            ("--frames", self.frames.is_some() && !takes.frames),
        ];
        given
            .into_iter()
            .filter(|(_, idle)| *idle)
            .map(|(flag, _)| flag)
            .collect()
    }
}

fn put<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}

/// Help text with the engine's default appended.
fn about<T: Display>(what: &str, default: impl Fn(Setup) -> T) -> String {
    format!("{what} [default: {}]", default(Setup::default()))
}

fn parse_size(text: &str) -> Result<[u64; 2], String> {
    sides(text).ok_or_else(|| "give height and width in pixels, such as 480x640".into())
}

fn parse_grid(text: &str) -> Result<[u64; 2], String> {
    sides(text).ok_or_else(|| "give height and width in patches, such as 24x32".into())
}

fn sides(text: &str) -> Option<[u64; 2]> {
    let sides: Option<Vec<u64>> = text
        .split(['x', 'X', ','])
        .map(|side| side.trim().parse().ok())
        .collect();
    match sides.as_deref() {
        Some(&[height, width]) => Some([height, width]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_two_numbers() {
        assert_eq!(parse_grid("24x32"), Ok([24, 32]));
        assert_eq!(parse_grid("24,32"), Ok([24, 32]));
        for bad in ["", "24", "24x", "24x32x2", "axb", "-1x2"] {
            assert!(parse_grid(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_not_given_stays() {
        let mut setup = Setup {
            batch: 7,
            accum: 3,
            ..Setup::default()
        };
        let flags = SetupFlags {
            accum: Some(5),
            clip: Some(true),
            ..SetupFlags::default()
        };
        flags.apply(&mut setup);
        assert_eq!(
            setup,
            Setup {
                batch: 7,
                accum: 5,
                clip: true,
                ..Setup::default()
            }
        );
    }
}
