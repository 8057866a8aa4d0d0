//! The kernels between cards: copies in both directions, and collectives by size.

use vramscope_benchmark::{Class, Direction, Kernel, Precision, Shape};

use Precision::{Bf16, Fp32};

/// Collectives in the order in which they run.
const COLLECTIVES: [Class; 5] = [
    Class::AllReduce,
    Class::AllGather,
    Class::ReduceScatter,
    Class::Broadcast,
    Class::SendReceive,
];

/// Kernels on `cards` cards. With fewer than two, only the largest of each kind is listed, so that the record says why
/// it has none.
pub(super) fn kernels(quick: bool, cards: u32) -> Vec<Kernel> {
    let alone = cards < 2;
    let logs: &[u64] = match (alone, quick) {
        (true, _) => &[28],
        (_, true) => &[16, 28],
        _ => &[10, 14, 16, 18, 20, 22, 24, 26, 28, 30],
    };
    let copied: &[u64] = match (alone, quick) {
        (false, false) => &[12, 16, 20, 24, 28, 30],
        _ => &[28],
    };
    let mut all = Vec::new();
    for &log in copied {
        for direction in [Direction::Forth, Direction::Back, Direction::Both] {
            all.push(peer_copy(1 << log, direction, true));
            if !quick && !alone && log >= 20 {
                all.push(peer_copy(1 << log, direction, false));
            }
        }
    }
    for devices in groups(cards) {
        for class in COLLECTIVES {
            all.extend(logs.iter().map(|log| collective(class, Bf16, 1 << log, devices)));
        }
        if !quick && !alone {
            // Mixed precision reduces gradients in fp32.
            all.extend(
                logs.iter()
                    .map(|log| collective(Class::AllReduce, Fp32, 1 << log, devices)),
            );
        }
    }
    all
}

/// Group sizes: two, four and so on, and all cards.
fn groups(cards: u32) -> Vec<u64> {
    let cards = u64::from(cards.max(2));
    let doubled = (1..).map(|log| 1_u64 << log).take_while(|n| *n < cards);
    doubled.chain([cards]).collect()
}

fn peer_copy(bytes: u64, direction: Direction, peer_access: bool) -> Kernel {
    Kernel {
        shape: Shape {
            bytes: Some(bytes),
            ..Shape::default()
        },
        direction: Some(direction),
        peer_access: Some(peer_access),
        ..Kernel::of(Class::PeerCopy)
    }
}

fn collective(class: Class, precision: Precision, bytes: u64, devices: u64) -> Kernel {
    Kernel {
        precision: Some(precision),
        shape: Shape {
            // Each card needs the same number of elements.
            bytes: Some(bytes.next_multiple_of(devices * 16)),
            devices: Some(devices),
            ..Shape::default()
        },
        ..Kernel::of(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_double_up_to_all() {
        assert_eq!(groups(1), [2]);
        assert_eq!(groups(2), [2]);
        assert_eq!(groups(6), [2, 4, 6]);
        assert_eq!(groups(8), [2, 4, 8]);
    }
}
