//! Cuts parameters into this GPU's shards, in the order in which those who call `fully_shard` have it: what is whole until
//! then decides the peak of loading.

use super::super::shard::shape_of_shard;
use super::plan::Plan;
use super::types::Types;
use crate::dtype::DType;
use crate::setup::Parallel;
use crate::tape::dims::Dims;
use crate::tape::log::ScopeId;
use crate::tape::{Kind, Tape, Tensor, Why};

/// A parameter.
pub(super) struct Param {
    /// The model's parameter, whose memory is lent while it is whole.
    pub(super) whole: Tensor,
    pub(super) scope: ScopeId,
    /// Elements of this GPU's shard, with padding.
    pub(super) elements: u64,
    /// This GPU's shard; without memory if the host has it.
    pub(super) shard: Tensor,
}

/// Cuts all parameters (`FSDPParam._init_sharded_param`). Trained parameters that are not in fp32 are widened before; the
/// wide ones live until all are cut (`original_sd`).
pub(super) fn shards(t: &Tape, params: &[Tensor], (plan, types, parallel): (&Plan, Types, &Parallel)) -> Vec<Param> {
    let scopes: Vec<ScopeId> = params.iter().map(|param| t.scope_of(param)).collect();
    let mut widened = Vec::new();
    for (param, &scope) in params.iter().zip(&scopes) {
        let dtype = types.of_shard(param);
        if t.made_type(param) != dtype && param.dtype() != DType::U8 {
            widened.push(weight(t, scope, param.numel(), dtype, "parameter in fp32"));
            t.give_up(param);
        }
    }
    let mut made: Vec<Option<Param>> = params.iter().map(|_| None).collect();
    for &at in plan.calls().flat_map(|group| &group.params) {
        made[at] = Some(cut(t, (&params[at], scopes[at]), types, parallel));
    }
    params.iter().for_each(|param| t.give_up(param));
    drop(widened);
    made.into_iter().flatten().collect()
}

/// Moves the parameters of each group from the host and cuts them (`_get_modules_and_states`). The whole ones are freed with the
/// group, but `fsdp2_prepare_model` has the table's and the head's until it returns (`input_weight`, `output_weight`).
pub(super) fn shards_from_host(
    t: &Tape,
    params: &[Tensor],
    (plan, types, parallel): (&Plan, Types, &Parallel),
) -> Vec<Param> {
    let scopes: Vec<ScopeId> = params.iter().map(|param| t.scope_of(param)).collect();
    params.iter().for_each(|param| t.leave_host(param));
    let mut made: Vec<Option<Param>> = params.iter().map(|_| None).collect();
    let mut held = Vec::new();
    for group in plan.calls() {
        let moved = |&at: &usize| {
            let param = &params[at];
            let whole = weight(
                t,
                scopes[at],
                param.numel(),
                types.of_shard(param),
                "parameter from the host",
            );
            (at, whole)
        };
        let moved: Vec<(usize, Tensor)> = group.params.iter().map(moved).collect();
        for &at in &group.params {
            made[at] = Some(cut(t, (&params[at], scopes[at]), types, parallel));
        }
        held.extend(moved.into_iter().filter(|(at, _)| plan.is_named(*at)));
    }
    t.move_buffers();
    drop(held);
    made.into_iter().flatten().collect()
}

/// Cuts the parameters of each block, and then the rest, as calls of `fully_shard` do: the whole ones of a group are freed when
/// its shards are made, and the next are served from their memory. Then the script empties the cache.
pub(super) fn shards_by_group(
    t: &Tape,
    params: &[Tensor],
    (plan, types, parallel): (&Plan, Types, &Parallel),
) -> Vec<Param> {
    let scopes: Vec<ScopeId> = params.iter().map(|param| t.scope_of(param)).collect();
    let mut made: Vec<Option<Param>> = params.iter().map(|_| None).collect();
    for group in plan.calls() {
        for &at in &group.params {
            made[at] = Some(cut(t, (&params[at], scopes[at]), types, parallel));
        }
        group.params.iter().for_each(|&at| t.give_up(&params[at]));
    }
    t.empty_cache();
    made.into_iter().flatten().collect()
}

/// Makes this GPU's shard of a parameter.
fn cut(t: &Tape, (param, scope): (&Tensor, ScopeId), types: Types, parallel: &Parallel) -> Param {
    let shape = match param.dtype() {
        DType::U8 => Dims::new(&[(param.numel() / DType::Bf16.width()).div_ceil(parallel.world)]),
        _ => shape_of_shard(param.shape(), parallel.world),
    };
    let elements = shape.numel();
    let memory = weight_of(t, scope, shape, types.of_shard(param), "shard of a parameter");
    if parallel.offload.is_any() {
        t.give_up(&memory);
    }
    let shard = match param.requires_grad() {
        true => t.require_grad(&memory),
        false => memory,
    };
    Param {
        whole: param.clone(),
        scope,
        elements,
        shard,
    }
}

/// Memory of weights.
pub(super) fn weight(t: &Tape, scope: ScopeId, elements: u64, dtype: DType, name: &'static str) -> Tensor {
    weight_of(t, scope, Dims::new(&[elements]), dtype, name)
}

/// Memory of weights of this shape.
fn weight_of(t: &Tape, scope: ScopeId, shape: Dims, dtype: DType, name: &'static str) -> Tensor {
    let x = t.in_scope(scope, || t.as_kind(Kind::Weight, || t.empty(shape, dtype, name)));
    x.storage().classify(Kind::Weight, Why::Parameter);
    x
}
