//! Shrinks kernels until they fit on a small card.

use vramscope_benchmark::{Class, Kernel, Shape};

use crate::kernels::work::Work;

/// Share of the free memory that a kernel's tensors may take; libraries' workspaces and rounding by the driver take
/// part of the rest.
const SHARE: (u64, u64) = (3, 4);

/// Returns a kernel that fits into `free` bytes: the kernel itself, or one of half the size, a quarter, and so on.
/// Attention is not shrunk, since it is useful to know that a length does not fit.
pub(super) fn fitted(mut kernel: Kernel, free: u64) -> Kernel {
    let room = free / SHARE.1 * SHARE.0;
    while kernel.class != Class::Attention && needed(&kernel) > room {
        match halved(&kernel.shape) {
            Some(shape) => kernel.shape = shape,
            None => break,
        }
    }
    kernel
}

/// Bytes on the card that needs most memory.
fn needed(kernel: &Kernel) -> u64 {
    let work = Work::of(kernel);
    let precision = kernel.precision.unwrap_or(vramscope_benchmark::Precision::Fp32);
    let inputs = work.inputs.iter().map(|input| input.bytes(precision));
    let outputs = work.outputs.iter().map(|output| output.bytes(precision));
    if kernel.class.is_collective() || kernel.class == Class::PeerCopy {
        // Every card has one input and output; inputs are generated on the first card, next to its own.
        return 2 * inputs.max().unwrap_or(0) + outputs.max().unwrap_or(0);
    }
    inputs.chain(outputs).sum()
}

/// Halves one extent or several: all sides of a square product, otherwise the extent that no other depends on.
fn halved(shape: &Shape) -> Option<Shape> {
    /// Smallest extent; below it, results say nothing about a card.
    const LEAST: u64 = 64;
    let half = |extent: Option<u64>| extent.filter(|n| *n >= 2 * LEAST).map(|n| n / 2);
    let mut out = shape.clone();
    if let (true, Some(side)) = (shape.m == shape.n && shape.n == shape.k, half(shape.m)) {
        (out.m, out.n, out.k) = (Some(side), Some(side), Some(side));
        return Some(out);
    }
    let extents = [
        &mut out.bytes,
        &mut out.elements,
        &mut out.entries,
        &mut out.rows,
        &mut out.m,
        &mut out.n,
        &mut out.length,
        &mut out.heads,
    ];
    let largest = extents.into_iter().find(|extent| half(**extent).is_some())?;
    *largest = half(*largest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::{kernels, whole};
    use super::*;

    #[test]
    fn every_kernel_of_a_small_card_fits() {
        for gib in [1, 2, 4, 8] {
            let free = gib << 30;
            for quick in [false, true] {
                let all = kernels(quick, 2, Some(free));
                for kernel in all.iter().filter(|kernel| kernel.class != Class::Attention) {
                    assert!(needed(kernel) <= free, "{gib} GiB: {}", kernel.label());
                }
            }
        }
    }

    #[test]
    fn a_small_card_still_measures_every_class_and_a_large_one_all_sizes() {
        let small = kernels(false, 2, Some(1 << 30));
        for class in Class::ALL {
            assert!(small.iter().any(|kernel| kernel.class == class), "{}", class.name());
        }
        assert!(small.len() < whole(false, 2).len());
        assert_eq!(kernels(false, 2, Some(140 << 30)), whole(false, 2));
        assert_eq!(kernels(false, 2, None), whole(false, 2));
    }

    #[test]
    fn a_square_stays_one() {
        let square = super::super::gemm(
            vramscope_benchmark::Precision::Fp32,
            [8192; 3],
            vramscope_benchmark::Layout::Nt,
        );
        let less = fitted(square, 500 << 20).shape;
        assert_eq!([less.m, less.n, less.k], [Some(4096); 3]);
    }
}
