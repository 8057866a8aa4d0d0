//! Granite 4 Vision (`transformers/models/granite4_vision/modeling_granite4_vision.py`).

use super::config::{CORNERS, Granite4VisionConfig};
use super::projector::Projector;
use crate::model::decoder::head::{Logits, formed_logits_and_loss};
use crate::model::decoder::stack::Decoder;
use crate::model::families::llava_next::{AnyRes, packed};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::placeholder_mask;
use crate::model::parts::llava_vision::{FeatureLayers, FeatureSelect, FeatureTower};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Kind, Tape, Tensor};

/// `Granite4VisionForConditionalGeneration`.
pub struct Granite4Vision {
    vision_tower: FeatureTower,
    image_newline: Tensor,
    language_model: Decoder,
    layerwise: Vec<Projector>,
    spatial: Vec<Projector>,
    lm_head: Option<Linear>,
    config: Granite4VisionConfig,
}

/// Features of the images for layers of the language model.
struct Features {
    /// Layer, and the features of each image.
    of_layers: Vec<(u64, Vec<Tensor>)>,
    /// Hidden states of the tower, which the output holds.
    hidden_states: Vec<Tensor>,
}

const LAYERWISE: &str = "layerwise_projectors";
const SPATIAL: &str = "spatial_projectors";

impl Granite4Vision {
    pub fn new(b: &Builder, c: &Granite4VisionConfig) -> Self {
        let t = b.tape();
        let all = FeatureLayers {
            indices: vec![0],
            is_list: false,
        };
        let vision_tower = FeatureTower::new(b, "model.vision_tower", &c.vision, (all, FeatureSelect::Full));
        let image_newline = t.component("model", Component::LanguageModel, || {
            b.weight("image_newline", [c.text.hidden])
        });
        let language_model = t.component("model.language_model", Component::LanguageModel, || {
            Decoder::new(b, &c.text)
        });
        let projectors = |name, count, takes_corners| -> Vec<Projector> {
            let make = |i| t.layer(name, i, || Projector::new(b, c, takes_corners));
            t.component("model", Component::Connector, || (0..count).map(make).collect())
        };
        let layerwise = projectors(LAYERWISE, c.layerwise.len(), false);
        let spatial = projectors(SPATIAL, CORNERS as usize, true);
        let lm_head = language_model.head(b, &c.text);
        Self {
            vision_tower,
            image_newline,
            language_model,
            layerwise,
            spatial,
            lm_head,
            config: c.clone(),
        }
    }

    /// Images of a run, fitted into tiles.
    fn fitted(&self, run: &Run) -> Vec<AnyRes> {
        run.setup.of_all_samples(self.config.fitted(&run.setup))
    }

    /// `get_image_features`: pixels [images, tiles, channels, side, side].
    fn features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Features {
        let fitted = self.fitted(run);
        let padded = t.unbind(pixels).into_iter();
        let images: Vec<Tensor> = padded
            .zip(&fitted)
            .map(|(x, image)| t.slice(&x, 0, image.inputs()))
            .collect();
        let tiles = t.cat(&images.iter().collect::<Vec<_>>(), 0);
        let (first, mut hidden_states) = self.vision_tower.features(t, run, &tiles);
        drop(first);
        let output = hidden_states.split_off(self.config.vision.shape().layers as usize + 1);
        let select = |state: u64| {
            let state = &hidden_states[state as usize];
            match self.config.feature_select {
                FeatureSelect::Default => t.slice(state, 1, state.size(1) - 1),
                FeatureSelect::Full => state.clone(),
            }
        };
        let c = &self.config;
        let layerwise = c.layerwise.iter().map(|&[state, layer]| (LAYERWISE, state, layer));
        let spatial = c.spatial.iter().map(|&layer| (SPATIAL, c.spatial_layer, layer));
        let mut of_layers = Vec::new();
        // Variables of the loops, which outlive their iterations: projected features and the lengths of the packed ones.
        let (mut _projected, mut _group, mut _lengths) = (None, None, None);
        t.component("model", Component::Connector, || {
            for (i, (name, state, layer)) in layerwise.chain(spatial).enumerate() {
                let (index, projector) = match name {
                    LAYERWISE => (i, &self.layerwise[i]),
                    _ => (i - c.layerwise.len(), &self.spatial[i - c.layerwise.len()]),
                };
                let projected = t.layer(name, index, || projector.forward(t, run, &select(state)));
                let inputs: Vec<u64> = fitted.iter().map(AnyRes::inputs).collect();
                let parts = t.split(&projected, 0, &inputs);
                match name {
                    LAYERWISE => _projected = Some(projected),
                    _ => _group = Some(projected),
                }
                let images = parts.iter().zip(&fitted);
                let pack = |(part, &image): (&Tensor, &AnyRes)| packed(t, image, part, &self.image_newline, c.side());
                let features: Vec<Tensor> = images.map(pack).collect();
                _lengths = Some(nn::ids(t, &[features.len() as u64], "feature lengths"));
                of_layers.push((layer, features));
            }
        });
        drop((tiles, output));
        Features {
            of_layers,
            hidden_states,
        }
    }

    /// Embeddings of token ids → last hidden states, with the features of `of_layers` added.
    fn hidden(
        &self,
        t: &Tape,
        run: &Run,
        (ids, mut embeds): (&Tensor, Tensor),
        of_layers: &[(u64, Vec<Tensor>)],
    ) -> Tensor {
        let mut mask = None;
        let mut joined: Vec<(u64, Tensor)> = Vec::new();
        t.component("model", Component::Connector, || {
            for (layer, features) in of_layers {
                let all = t.to_dtype(&t.cat(&features.iter().collect::<Vec<_>>(), 0), embeds.dtype());
                if mask.is_none() {
                    let made = placeholder_mask(t, ids);
                    embeds = t.masked_fill(&embeds, &made);
                    mask = Some(made);
                }
                joined.retain(|(other, _)| other != layer);
                joined.push((*layer, all));
            }
        });
        let before = |t: &Tape, index: usize, h: &Tensor| {
            let (_, features) = joined.iter().find(|(layer, _)| *layer == index as u64)?;
            let mask = mask.as_ref()?;
            let features = t.to_dtype(features, h.dtype());
            let sum = {
                let rows = t.index_rows(h, &t.squeeze(mask, 2), features.size(0));
                t.add(&rows, &features)
            };
            Some(t.masked_scatter(h, mask, &sum))
        };
        t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.forward_replacing(t, run, &embeds, &before)
        })
    }
}

impl Forward for Granite4Vision {
    fn next_logits(&self, _: &Tape, _: &Run, _: &Tensor) -> Option<Tensor> {
        None
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let images = run.images();
        let grid = self.config.vision.grid();
        let tiles = self.fitted(run).iter().map(AnyRes::inputs).max().unwrap_or(1);
        let pixels = [images, tiles, grid.channels, grid.image, grid.image];
        let mut batch = Batch::of_text(t, run).with_pixels(t, run, &pixels);
        batch
            .others
            .push(t.as_kind(Kind::Input, || nn::ids(t, &[images, 2], "image_sizes")));
        batch
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels), Some(lm_head)) = (&batch.ids, &batch.pixels, &self.lm_head) else {
            unreachable!("a batch has ids and pixels, and the model a head")
        };
        let embeds = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.embed_unscaled(t, run, ids)
        });
        let Features {
            of_layers,
            hidden_states,
        } = self.features(t, run, pixels);
        let h = self.hidden(t, run, (ids, embeds), &of_layers);
        drop(hidden_states);
        let mut output = formed_logits_and_loss(t, lm_head, h, batch, Logits::Scaled);
        output
            .held
            .extend(of_layers.into_iter().flat_map(|(_, features)| features));
        output
    }
}
