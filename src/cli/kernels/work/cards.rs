//! Tensors of kernels between cards: an input for each card that sends, an output for each card that receives.

use vramscope_benchmark::{Class, Direction, Kernel, Precision};

use super::Work;
use super::tensors::{Input, Output};

/// Work of a copy between cards or of a collective. Its bytes are the size as NVIDIA's nccl-tests define it: the larger
/// of the buffers that each card holds before and after.
pub(super) fn work(kernel: &Kernel) -> Work {
    let precision = kernel.precision.unwrap_or(Precision::Fp32);
    let shape = &kernel.shape;
    let bytes = shape.bytes.unwrap_or(1);
    let elements = bytes / precision.width();
    let cards = shape.devices.unwrap_or(2) as usize;
    let part = elements / cards.max(1) as u64;
    let ways = if kernel.direction == Some(Direction::Both) {
        2
    } else {
        1
    };
    // Number of input tensors and elements of each; then the same for outputs.
    let (given, made) = match kernel.class {
        Class::PeerCopy => ((ways, elements), (ways, elements)),
        Class::AllGather => ((cards, part), (cards, elements)),
        Class::ReduceScatter => ((cards, elements), (cards, part)),
        Class::Broadcast => ((1, elements), (cards, elements)),
        _ => ((cards, elements), (cards, elements)),
    };
    Work {
        bytes: ways as u64 * bytes,
        inputs: vec![Input::unit(given.1); given.0],
        outputs: vec![Output::of(made.1); made.0],
    }
}
