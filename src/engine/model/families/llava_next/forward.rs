//! LLaVA-NeXT, also called 1.6, LLaVA-NeXT-Video and LLaVA-OneVision
//! (`transformers/models/{llava_next,llava_next_video,llava_onevision}/modeling_*.py`).

use super::anyres::AnyRes;
use super::config::{LlavaNextConfig, LlavaNextKind};
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::model::parts::image_tokens::{placeholder_mask, placeholder_masks};
use crate::model::parts::llava_vision::{FeatureSelect, LlavaVision, LlavaVisionConfig};
use crate::nn::{self, Builder};
use crate::tape::{Component, Failure, Kind, Tape, Tensor};

/// `LlavaNextForConditionalGeneration`.
pub struct LlavaNext<T> {
    vision: LlavaVision,
    image_newline: Tensor,
    text: ImageText<T>,
    config: LlavaNextConfig,
}

impl<T: Text> LlavaNext<T> {
    pub fn new(b: &Builder, c: &LlavaNextConfig) -> Self {
        let t = b.tape();
        let parts = LlavaVisionConfig {
            tower: c.vision.clone(),
            text_hidden: c.text.hidden,
            activation: c.projector_activation,
            bias: c.projector_bias,
            has_norm: false,
            feature_layers: c.feature_layers.clone(),
            // `loss` records that the other selection fails.
            feature_select: match c.vision.has_class_token() {
                true => FeatureSelect::Default,
                false => FeatureSelect::Full,
            },
            joins_first: true,
        };
        let vision = LlavaVision::new(b, parts);
        let image_newline = t.component("model", Component::LanguageModel, || {
            b.weight("image_newline", [c.text.hidden])
        });
        let text = ImageText::new_before_head(b, &c.text, || {
            if let LlavaNextKind::Video(Some(stride)) = c.kind {
                let hidden = c.vision.shape().hidden;
                t.component("model.vision_resampler", Component::LanguageModel, || {
                    b.weight("pool.weight", [hidden, hidden, stride, stride]);
                    b.weight("pool.bias", [hidden]);
                });
            }
        });
        Self {
            vision,
            image_newline,
            text: text.looking_up(c.image_token, c.text.vocab),
            config: c.clone(),
        }
    }

    /// Images of a run, fitted into tiles.
    fn fitted(&self, run: &Run) -> Vec<AnyRes> {
        run.setup.of_all_samples(self.config.fitted(&run.setup))
    }

    /// `get_image_features`: pixels [images, tiles, channels, side, side] → tokens of each image,
    /// [tokens, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Vec<Tensor> {
        let fitted = self.fitted(run);
        let padded = t.unbind(pixels).into_iter();
        let images: Vec<Tensor> = padded
            .zip(&fitted)
            .map(|(x, image)| t.slice(&x, 0, image.inputs()))
            .collect();
        let tiles = t.cat(&images.iter().collect::<Vec<_>>(), 0);
        let (features, held) = self.vision.features(t, run, &tiles);
        let of_images = t.component("model", Component::Connector, || {
            let inputs: Vec<u64> = fitted.iter().map(AnyRes::inputs).collect();
            let parts = t.split(&features, 0, &inputs);
            drop(features);
            let side = self.config.vision.grid().side();
            let images = parts.iter().zip(&fitted);
            let packed: Vec<Tensor> = images
                .map(|(part, &image)| packed(t, image, part, &self.image_newline, side))
                .collect();
            drop(nn::ids(t, &[packed.len() as u64], "feature lengths"));
            packed
        });
        drop((held, tiles));
        of_images
    }
}

/// `pack_image_features` of one image, [1 + tiles, patches, width]: tiles are joined, padding is cut off, each row
/// ends in a newline, and the downscaled image goes first. Each tile has `side` features a side.
pub(crate) fn packed(t: &Tape, fitted: AnyRes, part: &Tensor, image_newline: &Tensor, side: u64) -> Tensor {
    let ([down, across], [rows, columns]) = (fitted.tiles, fitted.patches);
    let width = part.last();
    let whole = t.select(part, 0);
    if down * across == 0 {
        let newline = t.to_dtype(&t.unsqueeze(image_newline, 0), whole.dtype());
        return t.cat(&[&whole, &newline], 0);
    }
    let mut x = t.slice(part, 0, down * across);
    x = t.view(&x, [down, across, side, side, width]);
    x = t.contiguous(&t.permute(&x, &[4, 0, 2, 1, 3]));
    x = t.view(&x, [width, down * side, across * side]);
    x = t.slice(&t.slice(&x, 1, rows), 2, columns);
    if let Some(size) = fitted.resized {
        x = t.squeeze(&t.interpolate_bilinear(&t.unsqueeze(&x, 0), size), 0);
    }
    x = {
        let rows = x.size(1);
        let newline = t.unsqueeze(&t.unsqueeze(image_newline, 1), 2);
        let newlines = t.to_dtype(&t.expand(&newline, [width, rows, 1]), x.dtype());
        t.cat(&[&x, &newlines], 2)
    };
    x = t.transpose(&t.view(&x, [width, fitted.tile_tokens()]), 0, 1);
    t.cat(&[&whole, &x], 0)
}

impl<T: Text> Forward for LlavaNext<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let images = run.images();
        if images == 0 {
            return Batch::of_text(t, run);
        }
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
        if batch.pixels.is_some()
            && self.config.vision.has_class_token()
            && self.config.feature_select == FeatureSelect::Full
        {
            t.fail(|| Failure::LlavaNextFull);
        }
        let masks = match self.config.kind {
            LlavaNextKind::Next => |t: &Tape, ids: &Tensor| (placeholder_mask(t, ids), None),
            LlavaNextKind::Video(_) | LlavaNextKind::Onevision(_) => placeholder_masks,
        };
        self.text.loss_with_mask(t, run, batch, masks, |pixels| {
            let parts = self.image_features(t, run, pixels);
            match self.config.kind {
                LlavaNextKind::Onevision(_) => t
                    .component("model", Component::Connector, || {
                        t.cat(&parts.iter().collect::<Vec<_>>(), 0)
                    })
                    .into(),
                LlavaNextKind::Next | LlavaNextKind::Video(_) => Features::Parts(parts),
            }
        })
    }
}
