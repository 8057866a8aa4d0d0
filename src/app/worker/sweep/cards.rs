//! Selects the cards that a sweep is compared with.

use vramscope_engine::device::Device;
use vramscope_engine::order::sort_by_key;

use crate::state::{Key, Reading};

/// Cards to compare a sweep with: those named, otherwise the selected card and its neighbours in memory size among
/// cards of the same vendor.
pub fn cards(reading: &Reading) -> Vec<&'static Device> {
    let chosen = Device::by_name(&reading.gpu).ok();
    let named = reading.good.get(Key::Cards);
    let mut cards: Vec<&'static Device> = if named.trim().is_empty() {
        chosen.map(neighbours).unwrap_or_default()
    } else {
        named
            .split(',')
            .filter_map(|name| Device::by_name(name.trim()).ok())
            .collect()
    };
    cards.extend(chosen);
    sort_by_key(&mut cards, |card| card.usable());
    cards.dedup_by_key(|card| card.name);
    cards
}

/// Number of neighbours on each side of the selected card.
const BESIDE: usize = 2;

/// The vendor's cards with the next smaller and larger memory, one for each size.
fn neighbours(chosen: &'static Device) -> Vec<&'static Device> {
    let mut sizes: Vec<&'static Device> = Device::all().iter().filter(|d| d.vendor == chosen.vendor).collect();
    // Among cards of one size, the newest of the selected kind represents them all.
    sort_by_key(&mut sizes, |d| (d.memory(), d.kind == chosen.kind));
    let mut one_of_each: Vec<&'static Device> = Vec::new();
    for card in sizes.into_iter().filter(|d| d.memory() != chosen.memory()) {
        match one_of_each.last_mut() {
            Some(last) if last.memory() == card.memory() => *last = card,
            _ => one_of_each.push(card),
        }
    }
    let above = one_of_each.partition_point(|d| d.memory() < chosen.memory());
    let least = above.saturating_sub(BESIDE);
    one_of_each[least..(above + BESIDE).min(one_of_each.len())].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Draft;

    #[test]
    fn cards_beside_the_chosen_one_are_of_other_sizes() {
        let reading = Reading::of(&Draft::default(), &Draft::default());
        let cards = cards(&reading);
        assert!(cards.iter().any(|c| c.name == "H100 SXM"));
        assert!((3..=5).contains(&cards.len()), "{cards:?}");
        assert!(cards.windows(2).all(|pair| pair[0].usable() < pair[1].usable()));
    }
}
