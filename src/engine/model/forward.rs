//! The forward of each family, as transformers 5.17 runs it, written in the operations of the tape.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::dtype::DType;
use crate::nn::{KvCache, Numbered, TokenScores, ids, position_ids};
use crate::setup::{Attention, Checkpointing, Loss, PixelValues, Setup, Targets, TrainerKind};
use crate::tape::dims::Dims;
use crate::tape::{Component, Kept, Kind, Tape, Tensor};

/// A model whose parameters are made, ready to run.
pub trait Forward {
    /// Makes the batch on the GPU. Pixel values come in fp32 and are cast if the precision requires it.
    fn batch(&self, t: &Tape, run: &Run) -> Batch;

    /// Runs a batch to the loss; everything else that the model returns is dropped with the output.
    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output;

    /// Returns the logits [batch, 1, vocab] after one new token of each sample, ids [batch, 1], with the tokens before
    /// it in the run's cache; `None` if the model does not generate.
    fn next_logits(&self, _: &Tape, _: &Run, _: &Tensor) -> Option<Tensor> {
        None
    }

    /// Returns true if modules keep states of a forward until the next one, and with them what led there: the first step
    /// leaves what later ones free.
    fn keeps_states(&self) -> bool {
        false
    }
}

/// Output of a model: the loss, and the tensors that live as long as the output object.
pub struct Output {
    /// A scalar; for a batch without labels, the logits of the last position.
    pub loss: Tensor,
    /// Logits and other tensors that the output object holds.
    pub held: Vec<Tensor>,
}

/// Main inputs of the classes of a model and of its vision tower (`main_input_name`): one that takes "input_ids" is
/// treated as a text model by `gradient_checkpointing_enable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MainInputs {
    /// True if the model's class leaves it at "input_ids".
    pub model_takes_ids: bool,
    /// True if the class of its vision tower leaves it at "input_ids"; false without one.
    pub tower_takes_ids: bool,
}

/// Settings and state that every forward needs.
#[derive(Clone)]
pub struct Run {
    /// Micro-batch, lengths, images.
    pub setup: Setup,
    /// Attention implementation.
    pub attn: Attention,
    /// True if the model generates, and so keeps keys and values from one forward to the next.
    pub generates: bool,
    /// Value of `use_cache`, of the setup or else of the model's configuration.
    use_cache: bool,
    cache: RefCell<Option<KvCache>>,
    /// Position ids that `generate` gives to a forward, [batch, seq].
    given_positions: RefCell<Option<Tensor>>,
    /// `rope_deltas`, which Qwen models keep from one forward to the next.
    rope_deltas: Kept,
    ckpt: Cell<Checkpointing>,
    /// True if the vision tower, when only it is checkpointed, makes its own inputs require gradients.
    tower_requires_grad: bool,
    /// True if the model, when all of it is checkpointed, makes the outputs of its embeddings require gradients.
    whole_requires_grad: bool,
    /// True if weights were loaded in fp32 and narrowed by what wraps the model, of which the collator knows nothing.
    leaves_pixels: bool,
    /// Inputs of the vision tower in a micro-batch.
    images: u64,
    /// True if images are encoded before the forward.
    encodes_first: bool,
}

impl Run {
    /// Makes the forward's view of a setup; `use_cache` is that of the model, if the setup has none.
    pub fn of(setup: &Setup, use_cache: bool, main_inputs: MainInputs) -> Self {
        Self {
            setup: setup.clone(),
            attn: setup.attn,
            generates: false,
            use_cache: setup.use_cache.unwrap_or(use_cache),
            cache: RefCell::default(),
            given_positions: RefCell::default(),
            rope_deltas: Kept::default(),
            ckpt: Cell::new(setup.ckpt),
            tower_requires_grad: main_inputs.tower_takes_ids,
            whole_requires_grad: main_inputs.model_takes_ids || enables_gradients(setup),
            leaves_pixels: false,
            images: setup.batch.saturating_mul(setup.images),
            encodes_first: false,
        }
    }

    /// Encodes images before the forward, as ms-swift does.
    pub(super) const fn encode_first(&mut self, encodes_first: bool) {
        self.encodes_first = encodes_first;
    }

    /// Returns true if images are encoded before the forward, which then holds embeddings as its argument.
    pub const fn encodes_first(&self) -> bool {
        self.encodes_first
    }

    /// Runs what makes embeddings of texts and images: outside of autocast if they are made before the forward.
    pub fn encoded<R>(&self, t: &Tape, make: impl FnOnce() -> R) -> R {
        match self.encodes_first {
            true => t.autocast(None, make),
            false => make(),
        }
    }

    /// Takes the inputs of the vision tower of each sample, where they differ.
    pub(super) fn take_images(&mut self, of_samples: &[u64]) {
        if !self.setup.image_counts.is_empty() {
            self.images = of_samples.iter().fold(0, |sum, inputs| sum.saturating_add(*inputs));
        }
    }

    /// Inputs of the vision tower in a micro-batch: images, or the tiles that they are cut into.
    pub const fn images(&self) -> u64 {
        self.images
    }

    /// Leaves pixel values in fp32, as a trainer does whose weights were loaded so, whatever narrows them afterwards.
    pub const fn leave_pixels(&mut self) {
        self.leaves_pixels = true;
    }

    /// The arguments of a forward, of which what the batch left in fp32 is in the type that the model runs in: DeepSpeed's
    /// trainer casts them (`_prepare_input`), FSDP where the outermost module begins (`cast_forward_inputs`). `None` if all
    /// are in their type.
    pub fn narrowed(&self, t: &Tape, batch: &Batch) -> Option<Batch> {
        self.leaves_pixels.then(|| batch.narrowed(t, self.setup.tower_dtype()))
    }

    /// Returns the cache for the keys and values of a language model in a forward that begins; `windows` are the
    /// positions that its blocks see. `None` unless the model generates, or trains or evaluates with `use_cache` and
    /// without checkpointed blocks.
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

    /// Gives position ids to the forwards that follow, or lets the model make them again.
    pub fn give_positions(&self, positions: Option<Tensor>) {
        self.given_positions.replace(positions);
    }

    /// Position ids of embeddings [batch, seq, hidden]: those that were given, or the model's own, [1, seq].
    pub fn position_ids(&self, t: &Tape, embeds: &Tensor) -> Tensor {
        let given = self.given_positions.borrow().clone();
        given.unwrap_or_else(|| position_ids(t, embeds))
    }

    /// Drops the cache with the outputs, and returns the shapes and types of its keys and values.
    pub fn drop_cache(&self) -> Vec<(Dims, DType)> {
        self.cache.take().map_or_else(Vec::new, |cache| cache.states())
    }

    /// Keeps `rope_deltas`, replacing those of the forward before.
    pub fn keep_rope_deltas(&self, t: &Tape, deltas: Tensor) {
        self.rope_deltas.set(t, deltas);
    }

    /// The attribute that is kept from one forward to the next.
    pub fn kept(&self) -> &Kept {
        &self.rope_deltas
    }

    /// Runs `f` without checkpointed blocks (TRL's `disable_gradient_checkpointing`).
    pub fn without_checkpoints<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.ckpt.replace(Checkpointing::None);
        let result = f();
        self.ckpt.set(before);
        result
    }

    /// Returns true if blocks of the part of the model that is running are checkpointed.
    pub fn checkpoints(&self, t: &Tape) -> bool {
        self.checkpoints_in(t.component_now())
    }

    /// Calls a block with its input, checkpointed if those of the part of the model that is running are
    /// (`GradientCheckpointingLayer.__call__`).
    pub fn block<B: ?Sized>(
        &self,
        t: &Tape,
        block: &Numbered<B>,
        input: Tensor,
        forward: impl Fn(&Tape, Tensor) -> Tensor + 'static,
    ) -> Tensor {
        if self.is_reentrant(t) {
            let forward = move |t: &Tape, inputs: &[Tensor]| forward(t, inputs[0].clone());
            return self.reentrant(t, block, vec![input], forward);
        }
        block.enter(t, || match self.checkpoints(t) {
            true => t.checkpoint(input, Rc::new(forward)),
            false => forward(t, input),
        })
    }

    /// [`Self::block`] for a block that gets another tensor by position too, whose gradient a reentrant checkpoint hands on.
    pub fn block_with<B: ?Sized>(
        &self,
        t: &Tape,
        block: &Numbered<B>,
        (input, other): (Tensor, Tensor),
        forward: impl Fn(&Tape, Tensor, &Tensor) -> Tensor + 'static,
    ) -> Tensor {
        if self.is_reentrant(t) {
            let forward = move |t: &Tape, inputs: &[Tensor]| forward(t, inputs[0].clone(), &inputs[1]);
            return self.reentrant(t, block, vec![input, other], forward);
        }
        self.block(t, block, input, move |t, x| forward(t, x, &other))
    }

    /// [`Self::block`] for a block that gets its input by name: a reentrant checkpoint hands no gradient on.
    pub fn block_by_name<B: ?Sized>(
        &self,
        t: &Tape,
        block: &Numbered<B>,
        input: Tensor,
        forward: impl Fn(&Tape, Tensor) -> Tensor + 'static,
    ) -> Tensor {
        if self.is_reentrant(t) {
            let forward = move |t: &Tape, _: &[Tensor]| forward(t, input.clone());
            return self.reentrant(t, block, Vec::new(), forward);
        }
        self.block(t, block, input, forward)
    }

    /// Returns true if blocks of the part of the model that is running have reentrant checkpoints.
    fn is_reentrant(&self, t: &Tape) -> bool {
        self.setup.reentrant && self.checkpoints(t)
    }

    /// A reentrant checkpoint around a block's module, whose hooks run again with it, unless a library wraps the module; those
    /// around other checkpoints hold for both of a block's runs.
    fn reentrant<B: ?Sized>(
        &self,
        t: &Tape,
        block: &Numbered<B>,
        inputs: Vec<Tensor>,
        forward: impl Fn(&Tape, &[Tensor]) -> Tensor + 'static,
    ) -> Tensor {
        if t.has_hooks_around_checkpoints() {
            return block.enter(t, || t.checkpoint_reentrant(inputs, Rc::new(forward)));
        }
        let module = block.module();
        let call = move |t: &Tape, inputs: &[Tensor]| module.call(t, || forward(t, inputs));
        t.checkpoint_reentrant(inputs, Rc::new(call))
    }

    /// Returns true if blocks of a part of the model are checkpointed.
    pub fn checkpoints_in(&self, part: Component) -> bool {
        match self.ckpt.get() {
            Checkpointing::None => false,
            Checkpointing::Full => true,
            Checkpointing::Vision => part == Component::VisionTower,
            Checkpointing::Language => part == Component::LanguageModel,
            Checkpointing::Trained => self.trains(part),
        }
    }

    /// Returns true if weights of a part of the model are trained, or adapters may be.
    const fn trains(&self, part: Component) -> bool {
        let is_adapted =
            self.setup.freeze.is_adapted() && matches!(self.setup.lora_targets, Targets::AllLinear | Targets::Named(_));
        match part {
            Component::VisionTower => !self.setup.freeze.frozen().vision || is_adapted,
            _ => !self.setup.freeze.frozen().language || self.setup.freeze.is_adapted(),
        }
    }

    /// Returns the output of an embedding, as a leaf if it must have a gradient.
    ///
    /// `enable_input_require_grads`, which transformers' `gradient_checkpointing_enable` calls for text models, and
    /// which scripts that train adapters or a connector call for any model, turns the output of frozen embeddings into
    /// a leaf that requires gradients, so that checkpointed blocks of frozen weights pass gradients on.
    pub fn embedded(&self, t: &Tape, x: Tensor) -> Tensor {
        let is_tower = t.component_now() == Component::VisionTower;
        let must = match self.ckpt.get() {
            Checkpointing::None => false,
            Checkpointing::Trained => self.setup.freeze.is_adapted(),
            // It runs frozen towers without a graph (`patch_frozen_module`), and calls `enable_input_require_grads` on
            // the others.
            _ if self.setup.trainer.is_swift() => {
                self.checkpoints(t) && (!is_tower || self.trains(Component::VisionTower))
            }
            Checkpointing::Vision => self.checkpoints(t) && self.tower_requires_grad,
            Checkpointing::Full => self.whole_requires_grad,
            Checkpointing::Language => self.checkpoints(t),
        };
        let x = match must && !x.requires_grad() {
            true => t.require_grad_of_output(&x),
            false => x,
        };
        match self.setup.neftune && !is_tower && t.is_training() {
            true => noisy(t, x),
            false => x,
        }
    }

    /// `pixel_values.to(self.dtype)`, which most models begin with; TRL leaves pixel values in fp32, ms-swift patches.
    pub fn pixels_in_type_of_weights(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        let is_left = self.setup.trainer.is_trl() || self.setup.trainer.is_swift() || !self.casts_pixels();
        match is_left && pixels.dtype() != self.setup.tower_dtype() {
            true => t.to_dtype(pixels, self.setup.tower_dtype()),
            false => pixels.clone(),
        }
    }

    /// Type in which pixel values come to the GPU: a loop of one's own makes them there and casts them, a trainer's collator
    /// has cast them on the host.
    pub fn pixels_arrive_in(&self) -> DType {
        match self.casts_pixels() && self.setup.trainer.is_derived() {
            true => self.setup.tower_dtype(),
            false => DType::F32,
        }
    }

    /// Type in which patches come to the GPU: of Qwen-VL's images ms-swift casts them there, of others on the host.
    pub fn patches_arrive_in(&self) -> DType {
        match self.setup.trainer.is_swift() {
            true => DType::F32,
            false => self.pixels_arrive_in(),
        }
    }

    /// Returns true if pixel values are cast to the weights' type before forward.
    fn casts_pixels(&self) -> bool {
        let is_left = self.setup.trainer.is_trl() || self.leaves_pixels || self.has_processors_pixels();
        self.setup.tower_dtype().is_half() && !is_left
    }

    /// Returns true if pixel values come as the processor makes them; ms-swift's collator casts them whatever it is.
    fn has_processors_pixels(&self) -> bool {
        self.setup.pixels == PixelValues::Processor && !self.setup.trainer.is_swift()
    }
}

/// Adds noise to the output of the input embeddings (`neftune_post_forward_hook` of transformers' `integrations/neftune.py`), a
/// hook that `Trainer.train` registers behind that of `enable_input_require_grads`.
fn noisy(t: &Tape, x: Tensor) -> Tensor {
    let noise = t.empty_like(&x, x.dtype(), "noise");
    let out = t.add(&x, &noise);
    drop(noise);
    out
}

/// Returns true if the script calls `enable_input_require_grads` itself, as a loop of one's own beside frozen weights does,
/// and TRL's trainers do for adapters; `Trainer` leaves it to `gradient_checkpointing_enable`.
const fn enables_gradients(setup: &Setup) -> bool {
    !matches!(setup.trainer, TrainerKind::Transformers) && setup.freeze.frozen().language
}

/// Positions whose logits are made (`logits_to_keep`), and labels of these alone.
#[derive(Clone)]
pub struct KeptLogits {
    /// Marks of the positions, [seq]; without them they are the last ones of each row.
    pub mask: Option<Tensor>,
    /// Number of the positions in each row.
    pub count: u64,
    /// Labels, [batch, count] or one more where the first of them has none.
    pub labels: Tensor,
}

impl KeptLogits {
    /// `hidden_states[:, slice_indices, :]` of hidden states [batch, seq, width].
    pub fn of(&self, t: &Tape, h: &Tensor) -> Tensor {
        let Some(mask) = &self.mask else {
            return t.slice(h, 1, self.count);
        };
        let rows = t.view(h, [h.size(1), h.size(2)]);
        let kept = t.index_rows(&rows, mask, self.count);
        t.view(&kept, [1, self.count, h.size(2)])
    }
}

/// One batch of inputs.
#[derive(Default, Clone)]
pub struct Batch {
    /// Token ids, [batch, seq].
    pub ids: Option<Tensor>,
    /// Labels.
    pub labels: Option<Tensor>,
    /// Pixel values.
    pub pixels: Option<Tensor>,
    /// Pixel values of the same images in a higher resolution.
    pub high_res_pixels: Option<Tensor>,
    /// Hidden states from the stage before, [batch, seq, width], in a pipeline stage after the first.
    pub received: Option<Tensor>,
    /// Positions of samples that are packed into one row, [1, seq], in place of the padding mask.
    pub positions: Option<Tensor>,
    /// Token types, [batch, seq]: they mark images, or the answer.
    pub token_types: Option<Tensor>,
    /// Computation of the loss.
    pub loss: Loss,
    /// Figures of each token that TRL's head makes in place of logits.
    pub scores: Option<TokenScores>,
    /// Positions whose logits are made, if not all (`logits_to_keep`).
    pub kept: Option<KeptLogits>,
    /// Arrangement of the tiles of each image, [batch, images].
    pub arrangements: Option<Tensor>,
    /// Text that a querying transformer reads, and its mask, both [batch, length].
    pub qformer: Option<[Tensor; 2]>,
    /// Masks and whatever else stays on the GPU during the step.
    pub others: Vec<Tensor>,
    /// Mask of the pixels that are no padding, [batch, images, side, side] in int64.
    pub pixel_mask: Option<Tensor>,
}

impl Batch {
    /// Padding mask of texts, [batch, seq]; packed samples have none, and other tensors in its place.
    pub fn padding(&self) -> Option<&Tensor> {
        self.others.first().filter(|_| self.positions.is_none())
    }

    /// Makes token ids, labels, and a padding mask or packed positions, all [batch, seq] in int64.
    pub fn of_text(t: &Tape, run: &Run) -> Self {
        let shape = [run.setup.batch, run.setup.seq];
        let packed = run.setup.is_packed();
        t.as_kind(Kind::Input, || Self {
            ids: Some(ids(t, &shape, "input_ids")),
            labels: Some(ids(t, &shape, "labels")),
            positions: packed.then(|| ids(t, &shape, "position_ids")),
            others: match packed {
                true if run.setup.trainer.is_trl() => bounds(t, run),
                true => Vec::new(),
                false => vec![ids(t, &shape, "attention_mask")],
            },
            loss: run.setup.loss,
            ..Self::default()
        })
    }

    /// Returns one of `parts` equal parts of every tensor, as `torch.distributed.pipelining` chunks a batch; all parts
    /// are alike.
    pub fn chunk(&self, t: &Tape, parts: u64) -> Self {
        let part = |x: &Tensor| t.slice(x, 0, x.size(0) / parts);
        let of = |x: &Option<Tensor>| x.as_ref().map(part);
        Self {
            ids: of(&self.ids),
            labels: of(&self.labels),
            pixels: of(&self.pixels),
            high_res_pixels: of(&self.high_res_pixels),
            received: None,
            positions: of(&self.positions),
            token_types: of(&self.token_types),
            loss: self.loss,
            scores: None,
            kept: None,
            arrangements: of(&self.arrangements),
            qformer: self.qformer.as_ref().map(|[ids, mask]| [part(ids), part(mask)]),
            others: self.others.iter().map(part).collect(),
            pixel_mask: of(&self.pixel_mask),
        }
    }

    /// Casts what is in fp32; all else is shared.
    fn narrowed(&self, t: &Tape, dtype: DType) -> Self {
        let cast = |x: &Tensor| match x.dtype() {
            DType::F32 => t.as_kind(Kind::Input, || t.compute(x, dtype, "argument of the forward")),
            _ => x.clone(),
        };
        Self {
            pixels: self.pixels.as_ref().map(cast),
            high_res_pixels: self.high_res_pixels.as_ref().map(cast),
            others: self.others.iter().map(cast).collect(),
            ..self.clone()
        }
    }

    /// Adds token types, [batch, seq] in int64.
    pub fn with_token_types(mut self, t: &Tape, run: &Run) -> Self {
        let shape = [run.setup.batch, run.setup.seq];
        self.token_types = Some(t.as_kind(Kind::Input, || ids(t, &shape, "token_type_ids")));
        self
    }

    /// Makes texts that belong to images: token ids and a padding mask, both [batch, positions].
    pub fn of_pairs(t: &Tape, shape: [u64; 2]) -> Self {
        t.as_kind(Kind::Input, || Self {
            ids: Some(ids(t, &shape, "input_ids")),
            others: vec![ids(t, &shape, "attention_mask")],
            ..Self::default()
        })
    }

    /// Makes texts that belong to images and are padded without a mask: token ids [batch, positions].
    pub fn of_padded_pairs(t: &Tape, shape: [u64; 2]) -> Self {
        t.as_kind(Kind::Input, || Self {
            ids: Some(ids(t, &shape, "input_ids")),
            ..Self::default()
        })
    }

    /// Adds pixel values of the given shape, cast if the run casts them.
    pub fn with_pixels(mut self, t: &Tape, run: &Run, shape: &[u64]) -> Self {
        self.pixels = Some(t.as_kind(Kind::Input, || {
            let pixels = t.empty(shape, run.pixels_arrive_in(), "pixel_values");
            cast_pixels(t, run, pixels)
        }));
        self
    }

    /// Adds the mask of pixels that are no padding, if the batch is as the processor makes it.
    pub fn with_pixel_mask(mut self, t: &Tape, run: &Run, shape: &[u64]) -> Self {
        self.pixel_mask = (run.setup.pixels == PixelValues::Processor)
            .then(|| t.as_kind(Kind::Input, || ids(t, shape, "pixel_attention_mask")));
        self
    }

    /// Adds pixel values of the same images in a higher resolution.
    pub fn with_high_res_pixels(mut self, t: &Tape, run: &Run, shape: &[u64]) -> Self {
        self.high_res_pixels = Some(t.as_kind(Kind::Input, || {
            let pixels = t.empty(shape, run.pixels_arrive_in(), "high_res_pixel_values");
            cast_pixels(t, run, pixels)
        }));
        self
    }

    /// Makes pixel values of the given shape, and one class for each sample.
    pub fn of_classes(t: &Tape, run: &Run, shape: &[u64]) -> Self {
        t.as_kind(Kind::Input, || {
            let pixels = t.empty(shape, run.pixels_arrive_in(), "pixel_values");
            let labels = ids(t, &[run.setup.batch], "labels");
            Self {
                pixels: Some(cast_pixels(t, run, pixels)),
                labels: Some(labels),
                ..Self::default()
            }
        })
    }
}

/// Bounds of packed samples that TRL gives beside their positions: where each begins, twice, and which one a token is of.
fn bounds(t: &Tape, run: &Run) -> Vec<Tensor> {
    let begins = || t.empty([run.setup.lengths.len() as u64 + 1], DType::I32, "cu_seq_lens");
    vec![begins(), begins(), t.empty([1, run.setup.seq], DType::I32, "seq_idx")]
}

/// Casts pixel values that came in fp32, once the whole batch is made.
pub fn cast_pixels(t: &Tape, run: &Run, pixels: Tensor) -> Tensor {
    if run.casts_pixels() && pixels.dtype() == DType::F32 {
        t.compute(&pixels, DType::Bf16, "pixel_values")
    } else {
        pixels
    }
}
