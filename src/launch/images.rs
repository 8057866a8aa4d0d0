//! What tools do with images before a processor sees them.

use vramscope_engine::Setup;

use crate::draft::Draft;
use crate::model_facts::ModelFacts;
use crate::tool::Tool;

/// Most tokens of an image of a Qwen-VL model where no line says less (`max_pixels` 12,845,056 of its processor).
const MOST_TOKENS: u64 = 16_384;

/// Least tokens of one (`min_pixels` 3,136 of its processor).
const LEAST_TOKENS: u64 = 4;

/// Tokens around those of an image (`<|vision_start|>`, `<|vision_end|>`).
const AROUND: u64 = 2;

/// Most images of a sample that are simulated one by one.
const MOST_IMAGES: u64 = 64;

/// Images of a sample that is full of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filling {
    /// So many of the model's own size.
    Count(u64),
    /// Images of these heights and widths.
    Sizes(Vec<[u64; 2]>),
    /// One image of so many pixels a side.
    Side(u64),
}

/// What a launch does with images of given sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImageRules {
    /// Pixels to which the tool scales an image before its processor sees it, at most.
    pub most_pixels: Option<u64>,
    /// Pixels that the processor of a Qwen-VL model leaves an image, at most, in tokens of this many pixels a side.
    pub most_of_processor: Option<[u64; 2]>,
    /// The processor cuts no image into tiles.
    pub is_one_tile: bool,
}

impl ImageRules {
    /// Rules of a draft.
    pub(crate) fn of(draft: &Draft, tool: Tool, model: ModelFacts) -> Self {
        let of_processor = draft.processor_pixels.zip(model.token_side);
        Self {
            most_pixels: draft.pixels,
            most_of_processor: of_processor.map(|(most, side)| [most, side]),
            // `InternVLPlugin` asks its processor for tiles where `crop_to_patches` is set, and passes it nothing else.
            is_one_tile: tool == Tool::LlamaFactory && model.cuts_where_asked && draft.crops != Some(true),
        }
    }

    /// Changes a setup whose images have sizes to the images that the tower sees.
    pub fn apply(&self, setup: &mut Setup) {
        for size in &mut setup.image_sizes {
            *size = self.scaled(*size);
        }
        if self.is_one_tile && !setup.image_sizes.is_empty() {
            setup.images = setup.image_sizes.len() as u64;
            setup.image_sizes.clear();
        }
    }

    /// Images that fill a sample of so many positions, as far as it has room: as many as can be of the largest, and a sample
    /// that its length limits holds no more. `None` where no image has room, or none is known to take any.
    ///
    /// Of a tower that takes images of any size the patches count, not how many images they are of; of others, each image
    /// or tile has the model's own size.
    pub(crate) fn filling(&self, seq: u64, model: ModelFacts) -> Option<Filling> {
        // One position of text, from which the loss comes.
        let room = seq.checked_sub(1)?;
        let images = model.images?;
        if let Some(side) = model.token_side.filter(|_| images.takes_sizes) {
            let sizes = self.rectangles(room, side, images.takes_several);
            return (!sizes.is_empty()).then_some(Filling::Sizes(sizes));
        }
        let most = if images.takes_several { MOST_IMAGES } else { 1 };
        match room.checked_div(images.tokens)?.min(most) {
            0 => images
                .side
                .and_then(|side| Self::side_within(room, images.tokens, side)),
            count => Some(Filling::Count(count)),
        }
    }

    /// A smaller image than the model's own, whose `tokens` have no room: tokens grow with the square of its side.
    fn side_within(room: u64, tokens: u64, [own, unit]: [u64; 2]) -> Option<Filling> {
        let shrunk = own as f64 * (room as f64 / tokens as f64).sqrt();
        let side = (shrunk as u64 / unit) * unit;
        (side > 0).then_some(Filling::Side(side))
    }

    /// Sizes of images of so many tokens together, of which each has at most as many as its processor leaves it.
    fn rectangles(&self, tokens: u64, side: u64, takes_several: bool) -> Vec<[u64; 2]> {
        let in_tokens = |pixels: u64| (pixels / (side * side)).max(1);
        let limits = [self.most_pixels, self.most_of_processor.map(|[most, _]| most)];
        let most = limits.into_iter().flatten().map(in_tokens).min().unwrap_or(MOST_TOKENS);
        // Images that are many are drawn together: the tower takes their patches in one row.
        let each = most.max(tokens.div_ceil(MOST_IMAGES)).min(MOST_TOKENS);
        let mut left = tokens;
        let mut out = Vec::new();
        while left >= LEAST_TOKENS + AROUND && (takes_several || out.is_empty()) {
            let tokens = (left - AROUND).min(each);
            let height = tokens.isqrt();
            let width = tokens / height;
            out.push([height * side, width * side]);
            left -= height * width + AROUND;
        }
        out
    }

    /// Height and width of an image as the processor gets it, or as it leaves it.
    fn scaled(&self, size: [u64; 2]) -> [u64; 2] {
        let pixels = |[height, width]: [u64; 2]| height.saturating_mul(width);
        // Both sides, scaled to so many pixels and cut to whole units.
        let shrunk = |size: [u64; 2], most: u64, unit: u64| {
            let scale = (most as f64 / pixels(size) as f64).sqrt();
            size.map(|side| ((side as f64 * scale / unit as f64) as u64).max(1) * unit)
        };
        let size = match self.most_pixels {
            // `_preprocess_image` of LLaMA-Factory, `rescale_image` of ms-swift.
            Some(most) if pixels(size) > most => shrunk(size, most, 1),
            _ => size,
        };
        match self.most_of_processor {
            // `smart_resize` of qwen_vl_utils.
            Some([most, side]) => {
                let rounded = size.map(|length| ((length + side / 2) / side).max(1) * side);
                match pixels(rounded) > most {
                    true => shrunk(size, most, side),
                    false => size,
                }
            }
            None => size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::launch;

    const QWEN: ModelFacts = ModelFacts {
        token_side: Some(28),
        ..ModelFacts::UNKNOWN
    };
    const INTERNVL: ModelFacts = ModelFacts {
        cuts_where_asked: true,
        ..ModelFacts::UNKNOWN
    };

    fn applied(text: &str, model: ModelFacts, sizes: &[[u64; 2]]) -> Setup {
        let mut setup = Setup {
            image_sizes: sizes.to_vec(),
            ..Setup::default()
        };
        launch(&[text]).resolve(model).images.apply(&mut setup);
        setup
    }

    #[test]
    fn images_are_shrunk_to_the_limit_before_they_are_counted() {
        let llama = "stage: sft\nimage_max_pixels: 262144\n";
        assert_eq!(applied(llama, QWEN, &[[1080, 1920]]).image_sizes, [[384, 682]]);
        assert_eq!(applied(llama, QWEN, &[[100, 200]]).image_sizes, [[100, 200]]);
        // Its own limit where nothing is said.
        assert_eq!(
            applied("stage: sft\n", QWEN, &[[1080, 1920]]).image_sizes,
            [[576, 1024]]
        );
        let swift = "MAX_PIXELS=1003520 swift sft --max_length 4096";
        assert_eq!(applied(swift, QWEN, &[[1080, 1920]]).image_sizes, [[728, 1316]]);
        assert_eq!(applied(swift, QWEN, &[[728, 1316]]).image_sizes, [[728, 1316]]);
        // Only the processors of Qwen-VL models read the variable; the option is for all.
        assert_eq!(
            applied(swift, ModelFacts::UNKNOWN, &[[1080, 1920]]).image_sizes,
            [[1080, 1920]]
        );
        let option = "swift sft --max_length 4096 --max_pixels 262144";
        assert_eq!(
            applied(option, ModelFacts::UNKNOWN, &[[1080, 1920]]).image_sizes,
            [[384, 682]]
        );
    }

    #[test]
    fn llama_factory_cuts_tiles_where_it_is_asked_to() {
        let one = applied("stage: sft\n", INTERNVL, &[[480, 640], [448, 448]]);
        assert_eq!((one.images, one.image_sizes.len()), (2, 0));
        let cut = applied("stage: sft\ncrop_to_patches: true\n", INTERNVL, &[[480, 640]]);
        assert_eq!(cut.image_sizes, [[480, 640]]);
        assert_eq!(applied("stage: sft\n", QWEN, &[[480, 640]]).image_sizes.len(), 1);
        let swift = applied("swift sft --max_length 4096", INTERNVL, &[[480, 640]]);
        assert_eq!(swift.image_sizes.len(), 1);
    }

    #[test]
    fn what_no_line_says_of_images_is_said_to_be_open() {
        let missing = |text: &str, model| {
            let resolved = launch(&[text]).resolve(model);
            resolved
                .missing
                .iter()
                .any(|remark| remark.to_string().contains("--image-sizes"))
        };
        let text = ModelFacts {
            takes_images: false,
            ..ModelFacts::UNKNOWN
        };
        for command in [
            "swift sft --max_length 4096",
            "trl sft --model_name_or_path x",
            "MAX_PIXELS=1003520 swift sft --max_length 4096",
            "stage: sft\n",
        ] {
            assert!(missing(command, ModelFacts::UNKNOWN), "{command}");
            assert!(!missing(command, text), "{command}");
        }
    }

    #[test]
    fn a_length_of_null_is_no_limit() {
        let command = "trl sft --model_name_or_path x";
        let resolved = |more: &str| launch(&[&format!("{command} {more}")]).resolve(ModelFacts::UNKNOWN);
        assert_eq!(resolved("").case["seq"], 1024);
        let unlimited = resolved("--max_length None");
        assert_eq!(unlimited.case.get("seq"), None);
        assert!(
            unlimited
                .missing
                .iter()
                .any(|remark| remark.to_string().contains("--seq"))
        );
        let yaml = launch(&["dataset_name: x\nper_device_train_batch_size: 1\noutput_dir: y\nmax_length: null\n"]);
        assert_eq!(yaml.resolve(ModelFacts::UNKNOWN).case.get("seq"), None);
    }
}
