//! Lists the kernels that a run measures.

mod attention;
mod cards;
mod elements;
mod fit;
#[cfg(feature = "portable")]
mod portable;
mod products;
mod pytorch;

use vramscope_benchmark::{Class, Kernel, Shape};

#[cfg(all(test, feature = "portable"))]
pub use attention::attention;
#[cfg(feature = "portable")]
pub use portable::kernels as portable;
pub use products::gemm;
#[cfg(all(test, feature = "portable"))]
pub use products::many;

/// All kernels of a run on a machine with `cards` cards, in the order in which they run: the most important first, so
/// that an interrupted run has them. Kernels that do not fit into a card's `free` bytes, if known, are shrunk until
/// they do.
pub fn kernels(quick: bool, cards: u32, free: Option<u64>) -> Vec<Kernel> {
    let mut all = whole(quick, cards);
    if let Some(free) = free {
        all = all.into_iter().map(|kernel| fit::fitted(kernel, free)).collect();
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|kernel| seen.insert(kernel.clone()));
    all
}

/// All kernels for a card on which they all fit.
fn whole(quick: bool, cards: u32) -> Vec<Kernel> {
    let mut all = copies(quick);
    all.push(Kernel::of(Class::Launch));
    all.extend(products::squares(quick));
    all.extend(attention::fused(quick));
    all.extend(cards::kernels(quick, cards));
    all.extend(elements::kernels(quick));
    all.extend(attention::unfused(quick));
    if !quick {
        // Starting PyTorch takes as long as a tenth of a short run.
        all.extend(pytorch::kernels());
        all.extend(products::layers());
        all.extend(products::batched());
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|kernel| seen.insert(kernel.clone()));
    all
}

/// Without the portable backend there are no kernels for it.
#[cfg(not(feature = "portable"))]
pub fn portable(_quick: bool) -> Vec<Kernel> {
    Vec::new()
}

fn copies(quick: bool) -> Vec<Kernel> {
    let sizes: &[u64] = if quick {
        &[28]
    } else {
        &[16, 18, 20, 22, 24, 26, 28, 30, 32]
    };
    let device = sizes.iter().map(|log| copy(Class::DeviceCopy, 1 << log, None));
    let host_sizes: &[u64] = if quick { &[26] } else { &[12, 16, 20, 24, 28] };
    let host = host_sizes.iter().flat_map(|log| {
        [Class::HostToDevice, Class::DeviceToHost]
            .into_iter()
            .flat_map(move |class| [true, false].map(|pinned| copy(class, 1 << log, Some(pinned))))
    });
    device.chain(host).collect()
}

fn copy(class: Class, bytes: u64, pinned: Option<bool>) -> Kernel {
    Kernel {
        shape: Shape {
            bytes: Some(bytes),
            ..Shape::default()
        },
        pinned,
        ..Kernel::of(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_a_name_of_its_own_and_states_what_it_must() {
        for (quick, cards) in [(false, 1), (false, 8), (true, 2)] {
            let all = kernels(quick, cards, None);
            let mut names: Vec<String> = all.iter().map(Kernel::label).collect();
            names.sort_unstable();
            let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
            assert!(twice.is_empty(), "{twice:?}");
            for kernel in &all {
                assert_eq!(kernel.missing(), None, "{}", kernel.label());
            }
        }
    }

    #[test]
    fn every_class_is_measured_with_two_cards() {
        let all = kernels(false, 2, None);
        for class in Class::ALL {
            assert!(all.iter().any(|kernel| kernel.class == class), "{}", class.name());
        }
    }
}
