//! The forward of each family, as transformers 5.17 runs it, written in the operations of the tape.

mod blip2;
mod blip2_vision;
mod clip;
mod clip_vision;
pub(crate) mod decoder;
mod encoder;
pub(crate) mod further;
mod gemma3;
mod gemma_text;
mod gpt2;
mod idefics3;
mod idefics3_vision;
mod internvl;
mod internvl_vision;
mod llava;
mod llava_next;
mod llava_vision;
mod mllama;
mod mllama_positions;
mod mllama_text;
mod mllama_vision;
mod opt;
mod paligemma;
mod phi;
mod phi3;
mod qformer;
mod qwen2_5_vl;
mod qwen2_vl;
mod qwen3_vl;
mod qwen_vl;
mod siglip;
mod siglip_head;
mod siglip_vision;
mod smolvlm_merger;
mod text;
mod videomae;
mod vit;

use std::cell::RefCell;

use super::{Model, ModelConfig};
use crate::dtype::DType;
use crate::nn::{Builder, KvCache, ids};
use crate::setup::{Attention, Checkpointing, Freeze, Loss, Precision, Setup};
use crate::tape::dims::Dims;
use crate::tape::{Component, Kind, Tape, Tensor};

/// A model whose parameters are made, ready to run.
pub trait Forward {
    /// The batch on the GPU. Pixel values come in fp32 and are cast where the precision says so.
    fn batch(&self, t: &Tape, run: &Run) -> Batch;

    /// From a batch to the loss; everything else that the model returns is dropped with it.
    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output;

    /// Logits [batch, 1, vocab] that follow one new token of each sample, ids [batch, 1], while the run's
    /// cache holds what came before; `None` where the model does not generate.
    fn next_logits(&self, _: &Tape, _: &Run, _: &Tensor) -> Option<Tensor> {
        None
    }
}

/// What a model returns: the loss, and what lives as long as the output object does.
pub struct Output {
    /// A scalar; of a batch without labels, the logits of the last position.
    pub loss: Tensor,
    /// Logits and whatever else the output object holds.
    pub held: Vec<Tensor>,
}

/// What every forward needs to know of the setup.
#[derive(Clone)]
pub struct Run {
    /// Micro-batch, lengths, images.
    pub setup: Setup,
    /// Attention implementation.
    pub attn: Attention,
    /// The model generates: it keeps keys and values from one forward to the next.
    pub generates: bool,
    /// The model's configuration says `use_cache`.
    use_cache: bool,
    cache: RefCell<Option<KvCache>>,
    /// `rope_deltas`, which Qwen's models keep from one forward to the next.
    rope_deltas: RefCell<Option<Tensor>>,
    ckpt: Checkpointing,
    /// The vision tower, checkpointed alone, has its own inputs require gradients.
    tower_requires_grad: bool,
    /// The whole model, checkpointed, has the outputs of its embeddings require gradients.
    whole_requires_grad: bool,
}

impl Run {
    /// The forward's view of a setup.
    pub fn new(model: &Model, setup: &Setup) -> Self {
        Self {
            setup: setup.clone(),
            attn: setup.attn,
            generates: false,
            use_cache: setup.use_cache.unwrap_or(model.use_cache),
            cache: RefCell::default(),
            rope_deltas: RefCell::default(),
            ckpt: setup.ckpt,
            tower_requires_grad: model.tower_counts_as_text(),
            whole_requires_grad: model.counts_as_text() || enables_gradients(setup.freeze),
        }
    }

    /// Where a language model, whose blocks see so many positions, keeps keys and values in a forward
    /// that begins: where it generates, and where it trains or evaluates with `use_cache`, but not with
    /// checkpointed blocks.
    pub fn cache(&self, windows: &[Option<u64>]) -> Option<KvCache> {
        let trains = self.use_cache && !self.checkpoints_in(Component::LanguageModel);
        if !self.generates && !trains {
            return None;
        }
        let mut held = self.cache.borrow_mut();
        let cache = held.get_or_insert_with(|| KvCache::with_windows(windows));
        cache.rewind();
        Some(cache.clone())
    }

    /// The outputs are dropped, and what they hold of keys and values with them: shapes and types of these.
    pub fn drop_cache(&self) -> Vec<(Dims, DType)> {
        self.cache.take().map_or_else(Vec::new, |cache| cache.states())
    }

    /// Keeps `rope_deltas` in place of those of the forward before.
    pub fn keep_rope_deltas(&self, deltas: Tensor) {
        self.rope_deltas.replace(Some(deltas));
    }

    /// Whether blocks of the part of the model that is running are checkpointed.
    pub fn checkpoints(&self, t: &Tape) -> bool {
        self.checkpoints_in(t.component_now())
    }

    /// Whether blocks of a part of the model are checkpointed.
    pub fn checkpoints_in(&self, part: Component) -> bool {
        match self.ckpt {
            Checkpointing::None => false,
            Checkpointing::Full => true,
            Checkpointing::Vision => part == Component::VisionTower,
            Checkpointing::Language => part == Component::LanguageModel,
        }
    }

    /// The output of an embedding, a leaf where inputs must have gradients.
    ///
    /// `enable_input_require_grads`, which transformers' `gradient_checkpointing_enable` calls for models
    /// of text and who trains adapters or a connector calls for any, makes what frozen embeddings give a
    /// leaf that has a gradient, so that checkpointed blocks of frozen weights pass gradients on.
    pub fn embedded(&self, t: &Tape, x: Tensor) -> Tensor {
        let must = self.checkpoints(t)
            && match self.ckpt {
                Checkpointing::Vision => self.tower_requires_grad,
                Checkpointing::Full => self.whole_requires_grad,
                Checkpointing::Language | Checkpointing::None => true,
            };
        if must && !x.requires_grad() {
            t.require_grad(&x)
        } else {
            x
        }
    }

    /// Whether pixel values are cast to the weights' type before forward.
    pub fn casts_pixels(&self) -> bool {
        self.setup.precision == Precision::Bf16
    }
}

/// Whether a training run of this kind calls `enable_input_require_grads` itself.
const fn enables_gradients(freeze: Freeze) -> bool {
    matches!(freeze, Freeze::AllButConnector | Freeze::Lora | Freeze::Qlora)
}

/// One batch of inputs.
#[derive(Default)]
pub struct Batch {
    /// Token ids, [batch, seq].
    pub ids: Option<Tensor>,
    /// Labels.
    pub labels: Option<Tensor>,
    /// Pixel values.
    pub pixels: Option<Tensor>,
    /// What the stage before gave, [batch, seq, width], in a later stage of a pipeline.
    pub received: Option<Tensor>,
    /// Positions of samples that are packed into one row, [1, seq]; they take the padding mask's place.
    pub positions: Option<Tensor>,
    /// Token types, [batch, seq]: which tokens are images, or the answer.
    pub token_types: Option<Tensor>,
    /// How the loss is taken.
    pub loss: Loss,
    /// How the tiles of each image are arranged, [batch, images].
    pub arrangements: Option<Tensor>,
    /// Masks and whatever else stays on the GPU during the step.
    pub others: Vec<Tensor>,
}

impl Batch {
    /// Token ids, labels, and a padding mask or packed positions, all [batch, seq] in int64.
    pub fn of_text(t: &Tape, run: &Run) -> Self {
        let shape = [run.setup.batch, run.setup.seq];
        let packed = run.setup.is_packed();
        t.as_kind(Kind::Input, || Self {
            ids: Some(ids(t, &shape, "input_ids")),
            labels: Some(ids(t, &shape, "labels")),
            positions: packed.then(|| ids(t, &shape, "position_ids")),
            others: (!packed)
                .then(|| ids(t, &shape, "attention_mask"))
                .into_iter()
                .collect(),
            loss: run.setup.loss,
            ..Self::default()
        })
    }

    /// One of so many equal parts of every tensor, as `torch.distributed.pipelining` chunks a batch; all are alike.
    pub fn chunk(&self, t: &Tape, parts: u64) -> Self {
        let part = |x: &Tensor| t.slice(x, 0, x.size(0) / parts);
        let of = |x: &Option<Tensor>| x.as_ref().map(part);
        Self {
            ids: of(&self.ids),
            labels: of(&self.labels),
            pixels: of(&self.pixels),
            received: None,
            positions: of(&self.positions),
            token_types: of(&self.token_types),
            loss: self.loss,
            arrangements: of(&self.arrangements),
            others: self.others.iter().map(part).collect(),
        }
    }

    /// Token types, [batch, seq] in int64.
    pub fn with_token_types(mut self, t: &Tape, run: &Run) -> Self {
        let shape = [run.setup.batch, run.setup.seq];
        self.token_types = Some(t.as_kind(Kind::Input, || ids(t, &shape, "token_type_ids")));
        self
    }

    /// Texts that belong to images: token ids and a padding mask, both [batch, positions].
    pub fn of_pairs(t: &Tape, shape: [u64; 2]) -> Self {
        t.as_kind(Kind::Input, || Self {
            ids: Some(ids(t, &shape, "input_ids")),
            others: vec![ids(t, &shape, "attention_mask")],
            ..Self::default()
        })
    }

    /// As [`Batch::of_pairs`], of texts that are padded without a mask.
    pub fn of_padded_pairs(t: &Tape, shape: [u64; 2]) -> Self {
        t.as_kind(Kind::Input, || Self {
            ids: Some(ids(t, &shape, "input_ids")),
            ..Self::default()
        })
    }

    /// Pixel values of the given shape, cast if the run casts them.
    pub fn with_pixels(mut self, t: &Tape, run: &Run, shape: &[u64]) -> Self {
        self.pixels = Some(t.as_kind(Kind::Input, || {
            let pixels = t.empty(shape, DType::F32, "pixel_values");
            cast_pixels(t, run, pixels)
        }));
        self
    }

    /// Pixel values of the given shape, and one class for each sample.
    pub fn of_classes(t: &Tape, run: &Run, shape: &[u64]) -> Self {
        t.as_kind(Kind::Input, || {
            let pixels = t.empty(shape, DType::F32, "pixel_values");
            let labels = ids(t, &[run.setup.batch], "labels");
            Self {
                pixels: Some(cast_pixels(t, run, pixels)),
                labels: Some(labels),
                ..Self::default()
            }
        })
    }
}

/// Pixel values are made in fp32 and cast when the whole batch is made.
fn cast_pixels(t: &Tape, run: &Run, pixels: Tensor) -> Tensor {
    if run.casts_pixels() {
        t.compute(&pixels, DType::Bf16, "pixel_values")
    } else {
        pixels
    }
}

impl Model {
    /// Makes the parameters.
    pub(crate) fn build(&self, b: &Builder) -> Box<dyn Forward> {
        // A later stage of a pipeline has blocks of the language model, and is given what the first one makes of images.
        if let (false, Some(text)) = (b.tape().stage().is_first(), self.pipelined()) {
            return Box::new(decoder::CausalLm::new(b, text));
        }
        match &self.config {
            ModelConfig::Decoder(c) if !gemma_text::is_gemma(c) => Box::new(decoder::CausalLm::new(b, c)),
            ModelConfig::Llava(c) if !gemma_text::is_gemma(&c.text) => {
                Box::new(llava::Llava::<decoder::Decoder>::new(b, c))
            }
            _ => further::make()(self, b),
        }
    }

    /// Whether the class of the model leaves `main_input_name` at "input_ids".
    fn counts_as_text(&self) -> bool {
        use ModelConfig as M;
        !matches!(&self.config, M::Blip2(_) | M::Vit(_) | M::VideoMae(_))
    }

    /// Whether the class of the vision tower leaves `main_input_name` at "input_ids", so that
    /// `gradient_checkpointing_enable` treats it as a model of text.
    fn tower_counts_as_text(&self) -> bool {
        use ModelConfig as M;
        matches!(
            &self.config,
            M::Qwen2Vl(_) | M::Qwen25Vl(_) | M::Qwen3Vl(_) | M::Idefics3(_) | M::Mllama(_)
        )
    }

    /// Whether this version simulates the model's forward; else its configuration is only read.
    pub fn has_forward(&self) -> bool {
        use ModelConfig as M;
        match &self.config {
            M::Decoder(c) => gemma_text::is_gemma(c) || decoder::is_simulated(c),
            M::PaliGemma(c) => gemma_text::is_gemma(&c.text),
            M::Llava(_) | M::LlavaNext(_) => true,
            M::Qwen2Vl(c) => decoder::is_simulated(&c.text),
            M::Qwen25Vl(c) => decoder::is_simulated(&c.text),
            M::Qwen3Vl(c) => decoder::is_simulated(&c.text),
            M::InternVl(c) => decoder::is_simulated(&c.text),
            M::Siglip(c) => c.vision.head,
            M::Idefics3(c) => decoder::is_simulated(&c.text),
            M::Gpt2(_) | M::Opt(_) | M::Phi(_) | M::Gemma3(_) | M::Blip2(_) | M::Mllama(_) => true,
            M::Clip(_) | M::Vit(_) | M::VideoMae(_) => true,
        }
    }
}
