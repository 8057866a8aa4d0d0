//! Forward of the models whose images become tokens of a text: embeddings, features of the images in the place of their
//! tokens, the language model, and its head.

use super::delta_decoder::DeltaDecoder;
use super::image_tokens::{look_up, placeholder_mask};
use super::lfm2_decoder::Lfm2Decoder;
use super::mixed_layers::MixedDecoder;
use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::head::{Logits, logits_and_loss_in};
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Output, Run};
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

const LANGUAGE_MODEL: &str = "model.language_model";

/// A language model without its head, of any family.
pub trait LanguageModel {
    /// Token ids [batch, seq] → [batch, seq, hidden].
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor;

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape. `padding` is the padding mask, [batch,
    /// seq].
    fn forward(&self, t: &Tape, run: &Run, embeds: Tensor, padding: Option<&Tensor>) -> Tensor;
}

impl<T: Text> LanguageModel for T {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        Text::embed(self, t, run, ids)
    }

    fn forward(&self, t: &Tape, run: &Run, embeds: Tensor, _: Option<&Tensor>) -> Tensor {
        Text::forward(self, t, run, embeds)
    }
}

impl LanguageModel for DeltaDecoder {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed(t, run, ids)
    }

    fn forward(&self, t: &Tape, run: &Run, embeds: Tensor, padding: Option<&Tensor>) -> Tensor {
        self.forward_text(t, run, embeds, None, padding)
    }
}

impl LanguageModel for Lfm2Decoder {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        MixedDecoder::embed(self, t, run, ids)
    }

    fn forward(&self, t: &Tape, run: &Run, embeds: Tensor, padding: Option<&Tensor>) -> Tensor {
        self.forward_text(t, run, embeds, None, padding)
    }
}

/// `language_model` and `lm_head` of a model whose images become tokens of a text.
pub struct ImageText<T> {
    language_model: T,
    lm_head: Option<Linear>,
    form: Logits,
    /// Image token that the embedding is asked for, and the rows of the embedding.
    looked_up: Option<[u64; 2]>,
}

/// Features of a batch's images, in the order of their tokens.
pub enum Features {
    /// Those of all images, which the model's output holds in the type of the embeddings.
    Whole(Tensor),
    /// Those of each image, [tokens, width], which the forward joins.
    Parts(Vec<Tensor>),
    /// Those of all images, and what the model's output holds.
    Shown(Tensor, Tensor),
}

impl From<Tensor> for Features {
    fn from(all: Tensor) -> Self {
        Self::Whole(all)
    }
}

impl Features {
    /// Returns the features of all images in the given type, and what the model's output holds.
    fn joined(self, t: &Tape, dtype: DType) -> (Tensor, Tensor) {
        let (all, shown) = match self {
            Self::Whole(all) => (t.to_dtype(&all, dtype), None),
            Self::Parts(parts) => (t.to_dtype(&t.cat(&parts.iter().collect::<Vec<_>>(), 0), dtype), None),
            Self::Shown(all, shown) => (t.to_dtype(&all, dtype), Some(shown)),
        };
        let shown = shown.unwrap_or_else(|| all.clone());
        (all, shown)
    }
}

/// Embeddings with image features in them.
pub struct Placed {
    /// [batch, seq, hidden].
    pub embeds: Tensor,
    /// Locals of the model's forward, which live until it returns.
    pub held: Vec<Tensor>,
    /// Features that the model's output holds.
    pub shown: Option<Tensor>,
}

impl Placed {
    /// Embeddings of samples without images.
    fn of_text(embeds: Tensor) -> Self {
        Self {
            embeds,
            held: Vec::new(),
            shown: None,
        }
    }
}

/// Function that makes the mask of the image tokens, and another mask that the forward holds, if there is one.
pub type PlaceholderMask = fn(&Tape, &Tensor) -> (Tensor, Option<Tensor>);

/// Function that makes the ids that the embedding has, and a mask that the forward holds beside them.
pub type KnownIds = fn(&Tape, &Tensor) -> (Tensor, Tensor);

impl<T: Text> ImageText<T> {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        Self::new_before_head(b, c, || {})
    }

    /// Makes the language model, then other parts of the model, then the head.
    pub fn new_before_head(b: &Builder, c: &DecoderConfig, others: impl FnOnce()) -> Self {
        let language_model = b
            .tape()
            .component(LANGUAGE_MODEL, Component::LanguageModel, || T::new(b, c));
        others();
        let lm_head = language_model.head(b, c);
        Self {
            language_model,
            lm_head,
            form: Logits::AsTheyAre,
            looked_up: None,
        }
    }

    pub fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let product = self.language_model.next_logits(t, run, self.lm_head.as_ref()?, ids);
        Some(t.component("", Component::Head, || self.form.of(t, product)))
    }
}

impl<T: LanguageModel> ImageText<T> {
    /// Makes the language model, and its head.
    pub fn around(b: &Builder, model: impl FnOnce() -> T, head: impl FnOnce(&T) -> Linear) -> Self {
        let t = b.tape();
        let language_model = t.component(LANGUAGE_MODEL, Component::LanguageModel, model);
        let lm_head = Some(head(&language_model));
        Self {
            language_model,
            lm_head,
            form: Logits::AsTheyAre,
            looked_up: None,
        }
    }

    /// Gives the logits another form.
    pub fn forming(self, form: Logits) -> Self {
        Self { form, ..self }
    }

    /// Says which token stands for images in the ids that are looked up in an embedding of `rows`.
    pub fn looking_up(self, token: u64, rows: u64) -> Self {
        Self {
            looked_up: Some([token, rows]),
            ..self
        }
    }

    /// Runs a batch to the loss; `features` makes the features of its images from their pixels.
    pub fn loss(&self, t: &Tape, run: &Run, batch: &Batch, features: impl FnOnce(&Tensor) -> Features) -> Output {
        self.loss_with_mask(t, run, batch, |t, ids| (placeholder_mask(t, ids), None), features)
    }

    /// Runs a batch to the loss, as [`Self::loss`] does, with the mask of the image tokens made before the features; the
    /// number of tokens is not checked.
    pub fn loss_with_early_mask(
        &self,
        t: &Tape,
        run: &Run,
        batch: &Batch,
        features: impl FnOnce(&Tensor) -> Features,
    ) -> Output {
        self.loss_around(t, run, batch, |ids, embeds| {
            let Some(pixels) = &batch.pixels else {
                return Placed::of_text(embeds);
            };
            let mask = t.component("model", Component::Connector, || {
                t.unsqueeze(&t.compute(ids, DType::Bool, "image token mask"), 2)
            });
            placed(t, &embeds, features(pixels), || (mask, None))
        })
    }

    /// Runs a batch to the loss, as [`Self::loss`] does, with image tokens marked by `mask`.
    pub fn loss_with_mask(
        &self,
        t: &Tape,
        run: &Run,
        batch: &Batch,
        mask: PlaceholderMask,
        features: impl FnOnce(&Tensor) -> Features,
    ) -> Output {
        self.loss_around(t, run, batch, |ids, embeds| {
            let Some(pixels) = &batch.pixels else {
                return Placed::of_text(embeds);
            };
            let features = features(pixels);
            placed(t, &embeds, features, || mask(t, ids))
        })
    }

    /// Runs a batch, with images or without, to the loss, as [`Self::loss_with_mask`] does. `known` makes the ids that the
    /// embedding has, and a mask that the forward holds beside them. The model's output holds no features.
    pub fn loss_of_known_ids(
        &self,
        t: &Tape,
        run: &Run,
        batch: &Batch,
        (known, mask): (KnownIds, PlaceholderMask),
        features: impl FnOnce(&Tensor) -> Features,
    ) -> Output {
        let look_up = |ids: &Tensor| {
            let (known, mask) = t.component("model", Component::Connector, || known(t, ids));
            (known, Some(mask))
        };
        self.loss_from(t, run, batch, look_up, |ids, embeds| match &batch.pixels {
            Some(pixels) => {
                let features = features(pixels);
                let placed = placed(t, &embeds, features, || mask(t, ids));
                Placed { shown: None, ..placed }
            }
            None => Placed::of_text(embeds),
        })
    }

    /// Runs a batch to the loss; `place` writes image features over the embeddings of token ids.
    pub fn loss_around(
        &self,
        t: &Tape,
        run: &Run,
        batch: &Batch,
        place: impl FnOnce(&Tensor, Tensor) -> Placed,
    ) -> Output {
        if let (Some([token, rows]), Some(_)) = (self.looked_up, &batch.pixels) {
            look_up(t, token, rows);
        }
        self.loss_from(t, run, batch, |ids| (ids.clone(), None), place)
    }

    /// Runs a batch to the loss; `look_up` makes the ids that are looked up in the embedding, and a mask that the
    /// forward holds beside them; `place` writes image features over what they are.
    fn loss_from(
        &self,
        t: &Tape,
        run: &Run,
        batch: &Batch,
        look_up: impl FnOnce(&Tensor) -> (Tensor, Option<Tensor>),
        place: impl FnOnce(&Tensor, Tensor) -> Placed,
    ) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a batch has ids")
        };
        let (looked_up, mask) = look_up(ids);
        let Placed { embeds, held, shown } = run.encoded(t, || {
            let embeds = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
                self.language_model.embed(t, run, &looked_up)
            });
            place(ids, embeds)
        });
        let argument = run.encodes_first().then(|| embeds.clone());
        let h = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
            self.language_model.forward(t, run, embeds, batch.others.first())
        });
        drop((held, looked_up, mask, argument));
        let mut output = logits_and_loss_in(t, self.lm_head.as_ref(), h, batch, self.form);
        output.held.extend(shown);
        output
    }
}

/// Writes features over the embeddings of the image tokens, which `mask` marks.
fn placed(t: &Tape, embeds: &Tensor, features: Features, mask: impl FnOnce() -> (Tensor, Option<Tensor>)) -> Placed {
    t.component("model", Component::Connector, || {
        let (all, shown) = features.joined(t, embeds.dtype());
        let (mask, other) = mask();
        let embeds = t.place_features(embeds, &mask, &all);
        let held = [Some(mask), other, Some(all)].into_iter().flatten().collect();
        Placed {
            embeds,
            held,
            shown: Some(shown),
        }
    })
}
