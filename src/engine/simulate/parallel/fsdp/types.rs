//! Types in which FSDP keeps, gathers and sums parameters and gradients in mixed precision, as accelerate or a loop of one's
//! own sets them.

use crate::Setup;
use crate::dtype::DType;
use crate::setup::{AdapterType, Freeze, Parallel, Precision};
use crate::tape::Tensor;

/// The setup of a rank in mixed precision: the model runs with parameters in 16 bits. FSDP1 is prepared as any model is, under
/// autocast; `Accelerator._prepare_fsdp2` leaves that out, so that under FSDP2 norms are in 16 bits too.
pub(in super::super) fn base(setup: &Setup, is_fsdp1: bool) -> Setup {
    match is_mixed(setup) {
        true => Setup {
            precision: match (gathered(setup), is_fsdp1) {
                (DType::F16, true) => Precision::Fp16Amp,
                (DType::F16, false) => Precision::Fp16,
                (_, true) => Precision::Bf16Amp,
                (_, false) => Precision::Bf16,
            },
            // Adapters in fp32 are gathered in 16 bits as all else.
            lora_dtype: AdapterType::Bf16,
            ..setup.clone()
        },
        false => setup.clone(),
    }
}

/// True if `TrainingArguments(bf16=True)`, or `fp16`, makes accelerate keep trained parameters in fp32.
pub(in super::super) fn is_mixed(setup: &Setup) -> bool {
    setup.precision.autocast().is_some()
}

/// Type in which parameters are gathered in mixed precision.
pub(in super::super) fn gathered(setup: &Setup) -> DType {
    setup.precision.products()
}

/// True if accelerate widens trained parameters to fp32: not beside weights in 4 bits.
fn widens(given: &Setup, params: &[Tensor]) -> bool {
    is_mixed(given) && params.iter().all(|param| param.dtype() != DType::U8)
}

/// True if `fully_shard`, or FSDP1, moves each group from the host: TRL loads the model there in each of several processes, and neither
/// transformers' `Trainer` nor accelerate moves a model that FSDP shards. Weights in 4 bits are made on the GPU.
pub(in super::super) fn moves(given: &Setup, parallel: &Parallel) -> bool {
    let shards = parallel.strategy.shards_parameters() || parallel.strategy.is_fsdp1();
    shards && given.trainer.is_trl() && given.freeze != Freeze::Qlora
}

/// Types in which weights and adapters are made before [`base`] gathers them in 16 bits: what is in fp32 is not widened.
pub(in super::super) fn made_types(given: &Setup, parallel: &Parallel) -> [Option<DType>; 2] {
    let is_fsdp1 = parallel.strategy.is_fsdp1();
    let is_prepared = is_fsdp1 || parallel.strategy.shards_parameters() && given.trainer.is_derived();
    if !is_prepared || !is_mixed(given) || given.freeze == Freeze::Qlora {
        return [None; 2];
    }
    let are_wide = given.casts_weights() || given.lora_dtype == AdapterType::Fp32;
    [given.casts_weights(), are_wide].map(|is| is.then_some(DType::F32))
}

/// Types of a sharded model.
#[derive(Clone, Copy)]
pub(super) struct Types {
    /// Shards of trained parameters, and of frozen ones, where that is not the type in which they are gathered.
    pub(super) trained: Option<DType>,
    pub(super) frozen: Option<DType>,
    /// Floating-point arguments of wrapped modules are cast (`cast_forward_inputs`).
    pub(super) arguments: Option<DType>,
    /// Type to which what the model returns is cast (`output_dtype`).
    pub(super) outputs: Option<DType>,
    /// Type in which gradients are summed, if it is not their own (`reduce_dtype`).
    pub(super) sums: Option<DType>,
}

impl Types {
    /// Types of a model that is trained, or of one that it is compared with, which TRL widens nothing of.
    pub(super) fn of((given, parallel): (&Setup, &Parallel), params: &[Tensor], is_trained: bool) -> Self {
        if !given.trainer.is_derived() {
            // `MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)`
            let own = parallel.mp.then_some(given.precision.weights());
            return Self {
                trained: own,
                frozen: own,
                arguments: parallel.mp.then_some(DType::Bf16),
                outputs: None,
                sums: parallel.mp.then_some(DType::F32),
            };
        }
        let low = is_mixed(given).then(|| gathered(given));
        let frozen = (widens(given, params) && given.casts_weights()).then_some(DType::F32);
        Self {
            trained: match is_trained {
                true => widens(given, params).then_some(DType::F32),
                false => frozen,
            },
            frozen,
            arguments: low,
            outputs: low,
            sums: None,
        }
    }

    /// Type of a parameter's shard.
    pub(super) fn of_shard(&self, param: &Tensor) -> DType {
        let own = match param.requires_grad() {
            true => self.trained,
            false => self.frozen,
        };
        own.filter(|_| param.dtype() != DType::U8)
            .unwrap_or_else(|| gathered_type(param))
    }
}

/// Type in which a parameter is gathered: weights in 4 bits lie in a tensor of bf16 (`bnb_4bit_quant_storage`), as FSDP
/// takes parameters of one type alone.
pub(super) fn gathered_type(param: &Tensor) -> DType {
    match param.dtype() {
        DType::U8 => DType::Bf16,
        dtype => dtype,
    }
}
