//! Positions that a sample takes in a model's sequence.

use std::collections::BTreeMap;

use vramscope_engine::{Model, Setup};

use super::sample::{Sample, Text};

/// Most positions that a chat template adds to each turn: marks of its begin and end, its role and line breaks. Those of the
/// known families add four to six.
const MOST_OF_TURN: u64 = 10;
/// Most positions that it adds to a sample: a system prompt of its own. Qwen2.5's has 24, LLaVA's of Vicuna 35; the longest of a
/// vision-language model among LLaMA-Factory's templates (`yi_vl`) is of 455 letters.
const MOST_OF_SAMPLE: u64 = 192;
/// Most positions beside those of an image: marks of its begin and end, and a line break.
const MOST_OF_IMAGE: u64 = 4;
/// Bytes of UTF-8 that a token stands for at most, as a rule: what ordinary English comes to is four.
const MOST_BYTES_OF_TOKEN: u64 = 6;

/// Positions of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    /// The fewest.
    pub least: u64,
    /// The most: where nobody counts tokens, one a byte, which no tokenizer that falls back to bytes exceeds.
    pub most: u64,
    /// Those of its images among them.
    pub of_images: u64,
}

impl Positions {
    /// Of a sample.
    pub fn of(sample: &Sample, images: &mut ImageTokens<'_>) -> Self {
        let [least, most] = match sample.text {
            Text::Tokens(tokens) => return Self::counted(tokens, images.of_sample(sample)),
            Text::Counted(tokens) => [tokens; 2],
            Text::Bytes(bytes) => [bytes.div_ceil(MOST_BYTES_OF_TOKEN), bytes],
        };
        let of_images = images.of_sample(sample);
        let marks = MOST_OF_SAMPLE + MOST_OF_TURN * u64::from(sample.turns) + MOST_OF_IMAGE * u64::from(sample.images);
        Self {
            least: least.saturating_add(of_images),
            most: most.saturating_add(of_images).saturating_add(marks),
            of_images,
        }
    }

    /// Of a sample whose positions the file counts, its images' among them.
    fn counted(tokens: u64, of_images: u64) -> Self {
        Self {
            least: tokens,
            most: tokens,
            of_images: of_images.min(tokens),
        }
    }

    /// Most positions of what the model is to say, with the marks of its turns.
    pub fn most_of_answer(sample: &Sample) -> u64 {
        sample.answer.saturating_add(MOST_OF_TURN * u64::from(sample.turns))
    }

    /// The same of a tool that cuts samples to a length, or leaves longer ones out.
    #[must_use]
    pub fn cut_to(self, length: u64) -> Self {
        Self {
            least: self.least.min(length),
            most: self.most.min(length),
            ..self
        }
    }
}

/// Positions of images, as a model counts them; each distinct sample is counted once.
pub struct ImageTokens<'a> {
    model: Option<&'a Model>,
    setup: Setup,
    /// What a tool does with images before the model's processor sees them.
    prepare: Option<&'a dyn Fn(&mut Setup)>,
    known: BTreeMap<(u32, Vec<[u32; 2]>), u64>,
}

impl<'a> ImageTokens<'a> {
    /// Of a model; none for one that takes no images or is not known.
    pub fn of(model: Option<&'a Model>, setup: &Setup) -> Self {
        Self {
            model: model.filter(|model| model.takes().parts),
            setup: Setup {
                lengths: Vec::new(),
                image_sizes: Vec::new(),
                ..setup.clone()
            },
            prepare: None,
            known: BTreeMap::new(),
        }
    }

    /// The same under a tool that changes a setup with sizes of images to what the tower sees.
    #[must_use]
    pub fn prepared(self, prepare: &'a dyn Fn(&mut Setup)) -> Self {
        Self {
            prepare: Some(prepare),
            ..self
        }
    }

    /// Positions that the images of a sample take.
    pub fn of_sample(&mut self, sample: &Sample) -> u64 {
        let Some(model) = self.model.filter(|_| sample.images > 0) else {
            return 0;
        };
        let key = (sample.images, sample.sizes.clone());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let takes = model.takes();
        self.setup.images = if takes.image_count { u64::from(sample.images) } else { 1 };
        let knows = model.knows_image_sizes();
        let sizes = sample.sizes.iter().filter(|_| knows);
        self.setup.image_sizes = sizes.map(|size| size.map(u64::from)).collect();
        let mut setup = self.setup.clone();
        if let Some(prepare) = self.prepare {
            prepare(&mut setup);
        }
        let tokens = model.image_tokens(&setup);
        self.known.insert(key, tokens);
        tokens
    }
}
