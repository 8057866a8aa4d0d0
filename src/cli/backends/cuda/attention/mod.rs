//! Attention on CUDA: fused, by cuDNN or our own kernel, or as matrix products and softmax.

mod fused;
mod training;
mod unfused;

use vramscope_benchmark::{Kernel, Pass, Precision};
use vramscope_engine::attention::Algorithm;

use self::training::Training;
use self::unfused::Unfused;
use super::Cuda;
use super::compile::{Arguments, Source};
use super::job::{Ready, Tensors};
use crate::backends::Refusal;
use crate::kernels::work::Extents;

/// Prepares an attention.
pub fn ready<'a>(
    cuda: &'a Cuda,
    kernel: &Kernel,
    precision: Precision,
    sets: &mut [Tensors],
) -> Result<Ready<'a>, Refusal> {
    match kernel.algorithm {
        Some(Algorithm::Cudnn) => fused::ready(cuda, kernel, precision, sets),
        Some(Algorithm::Flash) => flash(cuda, kernel, precision),
        Some(Algorithm::Efficient) => Err(Refusal::Unsupported(
            "xFormers' kernels are part of PyTorch; fused attention is measured as cudnn".into(),
        )),
        _ if kernel.pass == Some(Pass::Backward) => Err(Refusal::Unsupported(
            "of unfused attention forward is measured, and forward with backward".into(),
        )),
        _ if kernel.pass == Some(Pass::ForwardBackward) => Training::ready(cuda, kernel, precision, sets),
        _ => Unfused::ready(cuda, kernel, precision, sets),
    }
}

/// Our own fused kernel, for cards without cuDNN.
fn flash<'a>(cuda: &'a Cuda, kernel: &Kernel, precision: Precision) -> Result<Ready<'a>, Refusal> {
    let e = Extents::of(kernel);
    if kernel.pass != Some(Pass::Forward) || precision.width() != 2 || !matches!(e.width, 64 | 128) {
        let reason = "the own fused kernel does forward in bf16 and fp16, heads of 64 and 128; cuDNN does more";
        return Err(Refusal::Unsupported(reason.into()));
    }
    if cuda.facts.capability[0] < 8 {
        let reason = "the own fused kernel needs compute capability 8.0 or newer";
        return Err(Refusal::Unsupported(reason.into()));
    }
    let name = format!("flash_{}", e.width);
    let function = cuda.function(Source::Attention, precision, &name)?;
    Ok(Ready {
        implementation: cuda.implementation("vramscope", name, true),
        extra: Vec::new(),
        within: 0,
        launch: Box::new(move |_, set| {
            let mut arguments = Arguments::default();
            for buffer in set.inputs.iter().chain(&set.outputs) {
                arguments = arguments.wide(buffer.address);
            }
            let arguments = arguments
                .narrow(e.length as u32)
                .narrow((e.heads / e.kv_heads) as u32)
                .float(1.0 / (e.width as f32).sqrt())
                .narrow(u32::from(e.causal));
            // One block for 64 queries of a head.
            function.launch_over([e.length.div_ceil(64), e.batch * e.heads], 128, &arguments)
        }),
    })
}
