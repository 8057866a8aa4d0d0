//! Group and batch norm, and the gradients of a layer norm's parameters.

use super::call::Call;
use super::reductions::sum_of;
use crate::dtype::DType;
use crate::tape::dims::{Dims, is_contiguous};
use crate::tape::{Storage, Tensor};

/// Returns the type in which statistics of a tensor are summed.
fn summed_in(x: &Tensor) -> DType {
    if x.dtype().is_half() { DType::F32 } else { x.dtype() }
}

/// Allocates `count` elements of a type, kept until they are dropped.
fn scratch(call: &Call<'_>, count: u64, dtype: DType, name: &'static str) -> Storage {
    call.tape.empty([count], dtype, name).storage().clone()
}

/// Returns [samples, channels, positions of each, groups] from the arguments `N`, `C`, `HxW` and `group`, the first at
/// position `first`.
fn extents(call: &Call<'_>, first: usize) -> Option<[u64; 4]> {
    let names = ["N", "C", "HxW", "group"];
    let mut all = [0; 4];
    for (i, (extent, name)) in all.iter_mut().zip(names).enumerate() {
        *extent = u64::try_from(call.int(first + i, name)?).ok().filter(|&n| n > 0)?;
    }
    let fits = Call::fit(&all[..3]) && Call::fit(&[all[0], all[3]]);
    fits.then_some(all)
}

/// Replays `native_group_norm(x, weight, bias, N, C, HxW, group, eps)`: a factor and a term for each channel
/// (`GroupNormKernelImplInternal` in `aten/src/ATen/native/cuda/group_norm_kernel.cu`).
pub(super) fn group_norm(call: &Call<'_>) {
    let (Some(x), Some([samples, channels, positions, _])) = (call.tensor(0, "input"), extents(call, 3)) else {
        return call.make();
    };
    let dense = call.tape.dense_copy(&x);
    call.make();
    let affine = call.tensor(1, "weight").is_some() || call.tensor(2, "bias").is_some();
    if affine && positions > 1 {
        let of = || scratch(call, samples * channels, summed_in(&x), "factor or term of a channel");
        drop([of(), of()]);
    }
    drop(dense);
}

/// Replays `native_group_norm_backward(grad, x, mean, rstd, weight, N, C, HxW, group, mask)`: two sums for each
/// channel, two numbers for each group, and a factor for each channel (`GroupNormBackwardKernelImplInternal`).
pub(super) fn group_norm_backward(call: &Call<'_>) {
    let tensors = (call.tensor(0, "grad_out"), call.tensor(1, "input"), extents(call, 5));
    let (Some(grad), Some(x), Some([samples, channels, positions, groups])) = tensors else {
        return call.make();
    };
    let dense = [&grad, &x].map(|x| call.tape.dense_copy(x));
    call.make();
    let of = |count| scratch(call, count, summed_in(&x), "sums of a gradient");
    let sums = [of(samples * channels), of(samples * channels)];
    if call.gives(0) {
        let numbers = [of(samples * groups), of(samples * groups)];
        let factor = (positions > 1 && call.tensor(4, "weight").is_some()).then(|| of(samples * channels));
        drop((factor, numbers));
    }
    drop((sums, dense));
}

/// Thresholds of a layer norm whose gradients are summed in two steps: it has more rows than `MANY_ROWS`, and fewer
/// columns than half the multiprocessors times a warp; the first step reduces `ROWS_OF_ONE` rows to one
/// (`LaunchGammaBetaBackwardCUDAKernel` in `aten/src/ATen/native/cuda/layer_norm_kernel.cu`).
const MANY_ROWS: u64 = 64 << 10;
const ROWS_OF_ONE: u64 = 32;

/// Allocates partial gradients of the weight and bias of `x`, which are the results from `first` on, if they are summed
/// in two steps.
pub(super) fn summed_in_two(call: &Call<'_>, x: &Tensor, first: usize) {
    let columns = call.output(first).map_or(0, |grad| grad.numel());
    let rows = x.numel().checked_div(columns).unwrap_or_default();
    if rows <= MANY_ROWS || columns / 32 >= call.tape.gpu().sms / 2 {
        return;
    }
    let partial = || {
        call.tape
            .empty([rows.div_ceil(ROWS_OF_ONE), columns], x.dtype(), "sums of rows")
    };
    let partials: Vec<Tensor> = (first..first + 2)
        .filter(|&at| call.gives(at))
        .map(|_| partial())
        .collect();
    for partial in &partials {
        let sum = call.tape.empty([columns], x.dtype(), "gradient of a parameter");
        sum_of(call.tape, partial, &[true, false]);
        drop(sum);
    }
}

/// Maximum threads of a block, elements of each thread and maximum blocks over positions (`flexible_launch_configs` in
/// `aten/src/ATen/native/cuda/Normalization.cuh`).
const MOST_THREADS: u64 = 512;
const TILE: u64 = 32;
const OF_THREAD: u64 = 16;
const MOST_BLOCKS: u64 = 128;
/// Minimum number of blocks; fewer become one.
const LEAST_BLOCKS: u64 = 8;

/// Returns the numbers of thread blocks over channels and over positions of a tensor with channels last.
fn blocks(channels: u64, positions: u64) -> [u64; 2] {
    let power = |n: u64| 1 << n.max(1).ilog2();
    let mut across: u64 = power(channels).min(TILE);
    let along: u64 = power(positions.div_ceil(OF_THREAD)).min(MOST_THREADS / across);
    if across * along != MOST_THREADS {
        across = power(channels).min(MOST_THREADS / along);
    }
    let over = positions.div_ceil(along * OF_THREAD).min(MOST_BLOCKS);
    [channels.div_ceil(across), if over < LEAST_BLOCKS { 1 } else { over }]
}

/// Allocates the sums that blocks combine: `sums` for each channel and block, and a counter for each block of channels.
fn staged(call: &Call<'_>, channels: u64, positions: u64, sums: u64) {
    let [across, over] = blocks(channels, positions);
    if over > 1 {
        let sums = scratch(call, sums * channels * over, DType::F32, "sums of thread blocks");
        drop((scratch(call, across, DType::I32, "semaphores of thread blocks"), sums));
    }
}

/// Layout of channels in [samples, channels, …].
#[derive(PartialEq)]
enum Lies {
    Dense,
    Last,
    Otherwise,
}

fn lies(x: &Tensor) -> Lies {
    if x.dim() < 2 {
        return Lies::Otherwise;
    }
    let order: Vec<usize> = [0].into_iter().chain(2..x.dim()).chain([1]).collect();
    let of = |all: &Dims| Dims::new(&order.iter().map(|&i| all[i]).collect::<Vec<_>>());
    if x.dim() == 2 || !x.is_contiguous() && is_contiguous(&of(x.shape()), &of(x.strides())) {
        return Lies::Last;
    }
    if x.is_contiguous() {
        Lies::Dense
    } else {
        Lies::Otherwise
    }
}

/// Replays `native_batch_norm(x, weight, bias, mean, var, training, …)`; returns false if its memory is unknown.
pub(super) fn batch_norm(call: &Call<'_>) -> bool {
    call.make();
    let Some(x) = call.tensor(0, "input") else { return true };
    match (lies(&x), call.is(5, "training")) {
        (Lies::Dense, _) | (Lies::Last, false) => true,
        (Lies::Last, true) if x.dim() <= 4 => {
            staged(call, x.size(1), x.numel() / x.size(1), 4);
            true
        }
        _ => false,
    }
}

/// Replays `native_batch_norm_backward(grad, x, weight, mean, var, saved_mean, saved_invstd, train, …)`; returns false
/// if its memory is unknown.
pub(super) fn batch_norm_backward(call: &Call<'_>) -> bool {
    let (Some(grad), Some(x)) = (call.tensor(0, "grad_out"), call.tensor(1, "input")) else {
        call.make();
        return true;
    };
    match (lies(&x), lies(&grad) == lies(&x), call.is(7, "train")) {
        (Lies::Dense, true, _) => {
            call.make();
            true
        }
        (Lies::Last, true, true) => {
            let channels = x.size(1);
            let sums = [(); 2].map(|()| scratch(call, channels, summed_in(&x), "sums of a channel"));
            call.make_only(&[1, 2]);
            staged(call, channels, x.numel() / channels, 2);
            call.make();
            drop(sums);
            true
        }
        _ => {
            call.make();
            false
        }
    }
}

/// Replays `cudnn_batch_norm(x, …)` and its backward: cuDNN takes nothing for the usual layout; its memory for channels
/// last is unknown.
pub(super) fn cudnn(call: &Call<'_>) -> bool {
    call.make();
    call.tensor(0, "input").is_none_or(|x| lies(&x) == Lies::Dense)
}
