//! Positions of time, height and width for every token of a thinker (`get_rope_index` of
//! `transformers/models/{qwen2_5_omni,qwen3_omni_moe}/modeling_*.py`).

use crate::dtype::DType;
use crate::model::parts::image_tokens::count_tokens;
use crate::model::parts::qwen_vl::Layout;
use crate::nn::{AXES, ids};
use crate::tape::{Tape, Tensor};

/// How a family counts positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PositionIds {
    /// As integers; the length of the text between two images is counted on the GPU (Qwen2.5-Omni).
    Integers,
    /// As floats; lengths are counted on the host (Qwen3-Omni).
    Floats,
}

impl PositionIds {
    const fn dtype(self) -> DType {
        match self {
            Self::Integers => DType::I64,
            Self::Floats => DType::F32,
        }
    }

    /// Positions [3, batch, seq] of samples with images, and the difference between each sample's last position and its
    /// length, [batch, 1].
    pub fn of_images(self, t: &Tape, layout: &Layout) -> (Tensor, Tensor) {
        let shape = [layout.batch, layout.seq];
        let padding = t.empty(shape, DType::Bool, "attention mask");
        let position_ids = t.empty([AXES, shape[0], shape[1]], self.dtype(), "position ids");
        let mut sample = Sample::default();
        for i in 0..layout.batch {
            sample.walk(t, layout, i, (self, &padding));
        }
        let deltas = t.empty([layout.batch, 1], self.dtype(), "rope_deltas");
        drop((sample, padding));
        (position_ids, deltas)
    }

    /// Positions of samples without images, and the same difference, [batch, 1]; `mask` is the padding mask,
    /// [batch, seq].
    pub fn of_text(self, t: &Tape, mask: &Tensor) -> (Tensor, Tensor) {
        let [batch, seq] = [mask.size(0), mask.size(1)];
        let (dtype, shape) = (self.dtype(), [batch, seq]);
        let counted = {
            let ends = match self {
                Self::Integers => t.running_sum(mask),
                Self::Floats => {
                    let wide = t.compute(mask, dtype, "float");
                    t.cumsum_last(&wide)
                }
            };
            t.compute(&ends, dtype, "sub a number")
        };
        drop(t.empty(shape, DType::Bool, "padding"));
        let expanded = t.expand(&t.unsqueeze(&counted, 0), [AXES, batch, seq]);
        let last = {
            let over_axes = t.empty(shape, dtype, "max");
            drop(ids(t, &shape, "places"));
            let last = t.empty([batch, 1], dtype, "max");
            drop(ids(t, &[batch, 1], "places"));
            drop(over_axes);
            last
        };
        let next = t.compute(&last, dtype, "add a number");
        let lengths = ids(t, &[batch, 1], "sum");
        let deltas = t.compute(&next, dtype, "sub");
        drop((next, lengths, last));
        (expanded, deltas)
    }
}

/// Variables of the loop over samples, which outlive its iterations.
#[derive(Default)]
struct Sample {
    /// Ids without padding.
    ids: Option<Tensor>,
    /// Places of tokens that start an image.
    starts: Option<Tensor>,
    /// Tokens after those.
    tokens: Option<Tensor>,
    /// Numbers of images, videos and sounds left.
    remaining: Option<[Tensor; 3]>,
    /// Their sum.
    all: Option<Tensor>,
    /// Length of the text before an image.
    text: Option<Tensor>,
    /// Tokens of an image.
    image: Option<Tensor>,
    /// Place after the last image.
    start: Option<Tensor>,
}

impl Sample {
    fn walk(&mut self, t: &Tape, layout: &Layout, i: u64, (form, padding): (PositionIds, &Tensor)) {
        let (length, images) = (layout.positions_of(i), layout.images_of(i));
        self.ids = None;
        self.ids = Some(t.index_ids(&t.select(padding, 0), length, DType::I64));
        self.count(t, length, images.len() as u64);
        for k in 0..images.len() {
            self.image(t, form, k == 0);
        }
        let used: u64 = images.iter().map(|image| layout.tokens_of(image) + 2).sum();
        if form == PositionIds::Integers {
            drop(t.empty([], DType::Bool, "comparison"));
            if used < length {
                self.text = Some(ids(t, &[], "length of the text"));
            }
        }
        let _positions = t.empty([AXES, length], form.dtype(), "positions of a sample");
        let row = t.select(padding, 0);
        let again = (form == PositionIds::Floats).then(|| t.compute(&row, DType::Bool, "comparison"));
        drop(t.nonzero(again.as_ref().unwrap_or(&row), length));
    }

    /// Counts the images, videos and sounds of a sample.
    fn count(&mut self, t: &Tape, length: u64, images: u64) {
        let mask = |n| t.empty([n], DType::Bool, "comparison");
        let starts = mask(length);
        self.starts = Some(t.nonzero(&starts, images));
        drop(starts);
        let next = ids(t, &[images], "add a number");
        self.tokens = Some(ids(t, &[images], "index"));
        drop(next);
        let number = |n| count_tokens(t, &mask(n));
        let sounds = number(length);
        let counts = [number(images), number(images), sounds];
        let visual = {
            self.remaining = None;
            self.start = None;
            ids(t, &[], "add")
        };
        self.all = Some(ids(t, &[], "add"));
        drop(visual);
        self.remaining = Some(counts);
    }

    /// Positions of one image.
    fn image(&mut self, t: &Tape, form: PositionIds, is_first: bool) {
        let scalar = |name| ids(t, &[], name);
        let compare = || drop(t.empty([], DType::Bool, "comparison"));
        match form {
            PositionIds::Integers => {
                compare();
                self.text_before(t, is_first);
            }
            PositionIds::Floats => {
                compare();
                compare();
                compare();
            }
        }
        let sides = [scalar("floor_divide"), scalar("floor_divide")];
        drop((scalar("mul"), sides));
        let patches = scalar("prod");
        self.image = Some(scalar("floor_divide"));
        drop(patches);
        let more = scalar("add");
        let most = scalar("add");
        drop(more);
        if form == PositionIds::Integers {
            let length = scalar("add");
            drop(most);
            if is_first {
                self.start = Some(length);
            }
        }
    }

    /// Length of the text before an image: a number on the host before the first.
    fn text_before(&mut self, t: &Tape, is_first: bool) {
        if is_first {
            self.text = None;
            return;
        }
        let before = ids(t, &[], "rsub");
        self.text = Some(ids(t, &[], "length of the text"));
        drop(before);
        drop(t.empty([], DType::Bool, "comparison"));
    }
}
