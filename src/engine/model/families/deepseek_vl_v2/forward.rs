//! DeepSeek-VL2 (`modeling_deepseek_vl_v2.py` of deepseek-ai/DeepSeek-VL2).

use super::config::DeepseekVlV2Config;
use super::language::Language;
use super::vision::{Projector, Tower};
use crate::dtype::DType;
use crate::model::decoder::head::logits_and_loss;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder, Linear};
use crate::setup::Loss;
use crate::tape::{Component, Kind, Tape, Tensor};

/// `DeepseekVLV2ForCausalLM`.
pub struct DeepseekVlV2 {
    vision: Tower,
    projector: Projector,
    image_newline: Tensor,
    view_seperator: Tensor,
    language: Language,
    lm_head: Linear,
    config: DeepseekVlV2Config,
}

/// Index of the mask of image tokens in [`Batch::others`].
const MASK: usize = 1;

const LANGUAGE: &str = "language.model";

/// Variables of `prepare_inputs_embeds` that outlive the images of which they are.
#[derive(Default)]
struct Held {
    whole: Option<Tensor>,
    tiles: Option<Tensor>,
    both: Option<Tensor>,
    of_sample: Option<Tensor>,
}

impl DeepseekVlV2 {
    pub fn new(b: &Builder, c: &DeepseekVlV2Config) -> Self {
        let t = b.tape();
        let vision = t.component("vision", Component::VisionTower, || Tower::new(b, &c.vision));
        let projector = t.component("projector", Component::Connector, || Projector::new(b, &c.projector));
        let [image_newline, view_seperator] = ["image_newline", "view_seperator"]
            .map(|name| t.component("", Component::LanguageModel, || b.weight(name, [c.projector.output])));
        let language = t.component(LANGUAGE, Component::LanguageModel, || Language::new(b, &c.text));
        let lm_head = t.component("language", Component::Head, || {
            let table = language.table();
            Linear::new(b, "lm_head", table.size(1), table.size(0), false)
        });
        Self {
            vision,
            projector,
            image_newline,
            view_seperator,
            language,
            lm_head,
            config: c.clone(),
        }
    }

    /// Tiles of each image of all samples, across and down.
    fn fitted(&self, run: &Run) -> Vec<[u64; 2]> {
        self.config.fitted(&run.setup)
    }

    /// `prepare_inputs_embeds`.
    fn embeds(&self, t: &Tape, run: &Run, batch: &Batch) -> Tensor {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let images = self.fitted(run);
        let of_sample: u64 = images.iter().map(|[across, down]| 1 + across * down).sum();
        let tiles = {
            let samples: Vec<Tensor> = t
                .unbind(pixels)
                .iter()
                .map(|sample| t.slice(sample, 0, of_sample))
                .collect();
            t.cat(&samples.iter().collect::<Vec<_>>(), 0)
        };
        let features = t.component("vision", Component::VisionTower, || self.vision.forward(t, run, &tiles));
        let tokens = t.component("projector", Component::Connector, || {
            self.projector.forward(t, &features)
        });
        let mut embeds = t.component(LANGUAGE, Component::LanguageModel, || {
            writable(t, run, self.language.embed(t, run, ids))
        });
        embeds = t.component("", Component::Connector, || {
            let mut held = Held::default();
            for _ in 0..run.setup.batch {
                held.of_sample = None;
                let parts: Vec<Tensor> = images
                    .iter()
                    .map(|&image| self.image(t, &tokens, image, &mut held))
                    .collect();
                let joined = t.cat(&parts.iter().collect::<Vec<_>>(), 0);
                drop(parts);
                let mask = t.select(&batch.others[MASK], 0);
                embeds = t.scatter_into_row(embeds.clone(), &t.unsqueeze(&mask, 1), &joined);
                held.of_sample = Some(joined);
            }
            embeds.clone()
        });
        drop((tokens, features, tiles));
        embeds
    }

    /// Tokens of one image: those of its whole, a separator, those of its tiles; each row ends in a newline.
    fn image(&self, t: &Tape, tokens: &Tensor, [across, down]: [u64; 2], held: &mut Held) -> Tensor {
        let [n, width] = [self.config.tile_side(), tokens.last()];
        let mut whole = t.select(tokens, 0);
        drop(held.whole.take());
        let mut tiles = t.narrow(tokens, 0, across * down);
        drop(held.tiles.take());
        whole = t.view(&whole, [n, n, width]);
        let newlines = |rows: u64| {
            let one = t.unsqueeze(&self.image_newline, 0);
            t.unsqueeze(&t.expand(&one, [rows, width]), 1)
        };
        whole = t.cat(&[&whole, &newlines(n)], 1);
        whole = t.view(&whole, [n * (n + 1), width]);
        tiles = t.permute(&t.view(&tiles, [down, across, n, n, width]), &[0, 2, 1, 3, 4]);
        tiles = t.reshape(&tiles, [down * n, across * n, width]);
        tiles = t.cat(&[&tiles, &newlines(down * n)], 1);
        tiles = t.view(&tiles, [down * n * (across * n + 1), width]);
        let both = t.cat(&[&whole, &t.unsqueeze(&self.view_seperator, 0), &tiles], 0);
        held.whole = Some(whole);
        held.tiles = Some(tiles);
        held.both = Some(both.clone());
        both
    }
}

/// The embeddings as they are written to in place: ms-swift gives out a copy of them (`patch_output_clone`), without which
/// PyTorch refuses to write to a leaf that requires gradients.
fn writable(t: &Tape, run: &Run, embeds: Tensor) -> Tensor {
    if !run.setup.trainer.is_swift() {
        return embeds;
    }
    let leaf = match embeds.requires_grad() {
        true => embeds,
        false => t.require_grad_of_output(&embeds),
    };
    t.clone_of(&leaf)
}

impl Forward for DeepseekVlV2 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let images = self.fitted(run);
        let grid = self.config.vision.grid;
        let tiles: u64 = images.iter().map(|[across, down]| 1 + across * down).sum();
        let pixels = [run.setup.batch, tiles, grid.channels, grid.image, grid.image];
        let mut batch = Batch::of_text(t, run).with_pixels(t, run, &pixels);
        t.as_kind(Kind::Input, || {
            let mask = t.empty([run.setup.batch, run.setup.seq], DType::Bool, "images_seq_mask");
            let crops = nn::ids(t, &[run.setup.batch, images.len() as u64, 2], "images_spatial_crop");
            batch.others.extend([mask, crops]);
        });
        batch
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let embeds = self.embeds(t, run, batch);
        let held = embeds.clone();
        let h = t.component(LANGUAGE, Component::LanguageModel, || {
            self.language.forward(t, run, embeds)
        });
        // Its own code casts all logits to fp32 and copies them for the loss.
        let batch = Batch {
            loss: Loss::Shifted,
            ..batch.clone()
        };
        let output = logits_and_loss(t, &self.lm_head, h, &batch);
        drop(held);
        output
    }
}
