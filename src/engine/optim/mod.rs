//! Optimizers: their states and the temporaries of one step (`torch/optim`, transformers).

mod adafactor;
mod adafactor_torch;
mod adagrad;
mod adamw;
mod bitsandbytes;
mod clip;
mod ema;
mod groups;
mod muon;
mod scaler;
mod sgd;
mod torchao;
mod work;

pub(crate) use adamw::{ADAMW, ADAMW_LOOP};
pub(crate) use bitsandbytes::is_bitsandbytes;
pub(crate) use clip::in_foreach_norm;
pub use clip::{Norms, clip_grad_norm};
pub use ema::Ema;
pub use scaler::GradScaler;
use work::Form;

use crate::dtype::DType;
use crate::setup;
use crate::tape::{Kind, Tape, Tensor, Why};
use crate::units::Bytes;

/// An optimizer over the trained parameters of a model.
pub struct Optimizer {
    kind: setup::Optimizer,
    params: Vec<Tensor>,
    states: Vec<States>,
    /// Parameters of the first of two groups, which are updated one after the other; all if there is one.
    first_group: usize,
    bitsandbytes: bitsandbytes::SharedState,
    /// True if transformers' `Trainer` makes it.
    is_trainers: bool,
    /// GPUs that each have a part of every parameter, as `DTensor`s have it; 1 if parameters are whole.
    world: u64,
    /// The optimizer of this GPU's parameters (`ZeroRedundancyOptimizer.optim`), if others update the rest.
    local: Option<Box<Self>>,
}

/// State tensors of one parameter; empty until its first step.
#[derive(Default, Clone)]
struct States(Vec<Tensor>);

/// Moments that an optimizer keeps of each weight; of Muon's two optimizers, the matrices'. Adafactor keeps means of rows and columns, which are small.
pub(crate) const fn moments(optimizer: setup::Optimizer) -> u64 {
    use setup::Optimizer as O;
    match optimizer {
        O::Sgd | O::Adafactor | O::AdafactorTorch => 0,
        O::Sgdm | O::Muon | O::Adagrad | O::AdagradLoop | O::Lion | O::Lion8bit | O::PagedLion8bit | O::PagedLion => 1,
        O::Adamw
        | O::AdamwFused
        | O::AdamwLoop
        | O::Adamw8bit
        | O::PagedAdamw8bit
        | O::PagedAdamw
        | O::AdamwTorchao8bit
        | O::AdamwTorchao4bit
        | O::AdamwTorchaoFp8 => 2,
    }
}

impl Optimizer {
    /// Makes an optimizer over those of `params` that require gradients.
    pub fn new(kind: setup::Optimizer, params: &[Tensor]) -> Self {
        let params: Vec<Tensor> = params.iter().filter(|p| p.requires_grad()).cloned().collect();
        Self::of(kind, [params, Vec::new()])
    }

    /// Makes an optimizer over those of `params` that require gradients, of a model whose tables are known to the tape: an
    /// optimizer of matrices leaves these, and heads, to another.
    pub fn with_tables(t: &Tape, kind: setup::Optimizer, params: &[Tensor]) -> Self {
        if kind != setup::Optimizer::Muon {
            return Self::new(kind, params);
        }
        let params = params.iter().filter(|p| p.requires_grad()).cloned().collect();
        Self::of(kind, muon::by_shape(t, params))
    }

    /// Makes the optimizer of transformers' `Trainer`: those of `params` that require gradients in two groups, with weight
    /// decay and without.
    pub fn grouped(t: &Tape, kind: setup::Optimizer, params: &[Tensor]) -> Self {
        let params = params.iter().filter(|p| p.requires_grad()).cloned().collect();
        Self {
            is_trainers: true,
            ..Self::of(kind, groups::by_decay(t, params))
        }
    }

    fn of(kind: setup::Optimizer, groups: [Vec<Tensor>; 2]) -> Self {
        let first_group = groups[0].len();
        let params = groups.concat();
        Self {
            kind,
            states: vec![States::default(); params.len()],
            params,
            first_group,
            bitsandbytes: bitsandbytes::SharedState::default(),
            is_trainers: false,
            world: 1,
            local: None,
        }
    }

    /// Updates only these of the parameters of each group, which are this GPU's own.
    pub fn keep_own(&mut self, groups: [Vec<Tensor>; 2]) {
        self.local = Some(Box::new(self.over(groups)));
    }

    /// The trained parameters, in order.
    pub fn params(&self) -> &[Tensor] {
        &self.params
    }

    /// The trained parameters of each group that has any.
    pub fn groups(&self) -> impl Iterator<Item = &[Tensor]> {
        let (first, second) = self.params.split_at(self.first_group);
        [first, second].into_iter().filter(|group| !group.is_empty())
    }

    /// The same optimizer, without states, over other parameters in the place of its own (`param_group["params"] = …`).
    pub fn over(&self, groups: [Vec<Tensor>; 2]) -> Self {
        Self {
            is_trainers: self.is_trainers,
            ..Self::of(self.kind, groups)
        }
    }

    /// Returns the optimizer over `DTensor`s in the place of its parameters, each this GPU's part of the rows of one that `world`
    /// GPUs share (FSDP2). Muon needs the number, since it multiplies whole matrices.
    pub fn over_shards(&self, groups: [Vec<Tensor>; 2], world: u64) -> Self {
        Self {
            world,
            ..self.over(groups)
        }
    }

    /// Returns true if the step takes the scaler's scale and checks for infinities by itself.
    pub fn scales_itself(&self) -> bool {
        self.kind == setup::Optimizer::AdamwFused
    }

    /// Name in the host's pace of this optimizer's update of parameters of a type that the host keeps.
    pub fn on_host(&self, dtype: DType) -> &'static str {
        match (self.kind, dtype) {
            (setup::Optimizer::AdamwFused, DType::F32) => "adamw_fused host element f32",
            (setup::Optimizer::AdamwFused, _) => "adamw_fused host element bf16",
            (_, DType::F32) => "adamw host element f32",
            _ => "adamw host element bf16",
        }
    }

    /// States in managed memory, which CUDA moves between host and device outside the allocator.
    pub fn paged(&self) -> Bytes {
        if let Some(local) = &self.local {
            return local.paged();
        }
        Bytes::new(self.bitsandbytes.paged)
    }

    /// Makes the states that an optimizer has as soon as it is made; those of most come with their first step.
    pub fn make_states(&mut self, t: &Tape) {
        if let Some(local) = &mut self.local {
            return local.make_states(t);
        }
        if self.has_states_at_once() {
            // Who replays a run while it is recorded hears the model end with its parameters.
            t.unfollow();
            self.init_adagrad(t);
        }
    }

    /// Moves states that are there before the first step to the GPU, if accelerate prepares the optimizer
    /// (`AcceleratedOptimizer`).
    pub fn place_states(&mut self, t: &Tape) {
        if self.is_trainers && self.has_states_at_once() {
            self.place_adagrad(t);
        }
    }

    /// Returns true for an optimizer whose constructor makes states.
    const fn has_states_at_once(&self) -> bool {
        matches!(self.kind, setup::Optimizer::Adagrad | setup::Optimizer::AdagradLoop)
    }

    /// One update of every parameter that has a gradient.
    pub fn step(&mut self, t: &Tape) {
        if let Some(local) = &mut self.local {
            return local.step(t);
        }
        self.make_states(t);
        let of_two = self.kind == setup::Optimizer::Muon;
        if !of_two {
            self.work(t);
        }
        // transformers' Adafactor loops over both groups in one function, whose variables outlive the first.
        if !of_two && (self.first_group == self.params.len() || self.kind == setup::Optimizer::Adafactor) {
            return t.no_grad(|| (self.form().update)(self, t));
        }
        let (params, mut states) = (self.params.clone(), std::mem::take(&mut self.states));
        let second = states.split_off(self.first_group);
        let (first_params, second_params) = params.split_at(self.first_group);
        let second_kind = if of_two { setup::Optimizer::Adamw } else { self.kind };
        for (kind, params, states) in [(self.kind, first_params, states), (second_kind, second_params, second)] {
            let mut group = Self {
                kind,
                params: params.to_vec(),
                states,
                first_group: params.len(),
                bitsandbytes: std::mem::take(&mut self.bitsandbytes),
                is_trainers: self.is_trainers,
                world: self.world,
                local: None,
            };
            if of_two && !params.is_empty() {
                group.work(t);
            }
            t.no_grad(|| (group.form().update)(&mut group, t));
            self.states.append(&mut group.states);
            self.bitsandbytes = group.bitsandbytes;
        }
    }

    /// What the step of this optimizer takes.
    fn form(&self) -> &'static Form {
        use setup::Optimizer as O;
        match self.kind {
            O::Adamw => &adamw::FOREACH,
            O::AdamwFused => &adamw::FUSED,
            O::AdamwLoop => &adamw::FOR_LOOP,
            O::Sgd => &sgd::PLAIN,
            O::Sgdm => &sgd::MOMENTUM,
            O::Adafactor => &adafactor::ADAFACTOR,
            O::AdafactorTorch => &adafactor_torch::ADAFACTOR,
            O::Muon => &muon::MUON,
            O::Adagrad => &adagrad::FOREACH,
            O::AdagradLoop => &adagrad::FOR_LOOP,
            O::AdamwTorchao8bit | O::AdamwTorchao4bit | O::AdamwTorchaoFp8 => &torchao::ADAMW,
            O::Adamw8bit | O::PagedAdamw8bit | O::PagedAdamw => &bitsandbytes::ADAMW,
            O::Lion | O::Lion8bit | O::PagedLion8bit | O::PagedLion => &bitsandbytes::LION,
        }
    }

    /// `zero_grad(set_to_none=True)`.
    pub fn zero_grad(&self) {
        self.params.iter().for_each(Tensor::clear_grad);
    }

    /// Makes a state in the layout of the parameter.
    fn state(t: &Tape, p: &Tensor, name: &'static str) -> Tensor {
        let state = t.in_scope(t.scope_of(p), || {
            t.as_kind(Kind::OptimizerState, || t.empty_like(p, p.dtype(), name))
        });
        state.storage().classify(Kind::OptimizerState, Why::State);
        state
    }
}
