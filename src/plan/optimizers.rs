//! What planning knows of each optimizer: how far its update is from AdamW's, its place in a search, and its name in
//! transformers.

use vramscope_engine::order::sort_by_key;
use vramscope_engine::setup::Optimizer;

/// Distance of an update that is AdamW's but for the rounding of its states.
const ROUNDED: u32 = 1;

/// Name of an optimizer in transformers; or what has no name there, and the optimizer to plan with instead.
type Named = Result<&'static str, (&'static str, Optimizer)>;

/// What planning knows of one optimizer.
struct Known {
    /// Distance from AdamW: a ranking, as in [`distance`](crate::search::distance()).
    distance: u32,
    /// Place among the optimizers of a search.
    place: u8,
    /// True if states lie in the host's memory.
    is_paged: bool,
    /// True if no search and no single change tries it: its update asks for other hyperparameters, or its step is not
    /// simulated to the byte.
    is_only_asked: bool,
    /// An optimizer that takes the same memory and is tried as a single change in its place.
    alike: Option<Optimizer>,
    /// Name in transformers.
    transformers: Named,
}

impl Known {
    const fn new(place: u8, distance: u32, transformers: Named) -> Self {
        Self {
            distance,
            place,
            is_paged: false,
            is_only_asked: false,
            alike: None,
            transformers,
        }
    }

    const fn paged(self) -> Self {
        Self { is_paged: true, ..self }
    }

    const fn only_asked(self) -> Self {
        Self {
            is_only_asked: true,
            ..self
        }
    }

    const fn like(self, other: Optimizer) -> Self {
        Self {
            alike: Some(other),
            ..self
        }
    }
}

const fn known(optim: Optimizer) -> Known {
    use Optimizer as O;
    match optim {
        O::AdamwFused => Known::new(0, 0, Ok("adamw_torch_fused")),
        O::Adamw => Known::new(1, 0, Ok("adamw_torch")),
        O::AdamwLoop => Known::new(2, 0, Err(("AdamW one parameter after the other", O::AdamwFused))),
        O::Adamw8bit => Known::new(3, ROUNDED, Ok("adamw_8bit")),
        O::PagedAdamw8bit => Known::new(4, ROUNDED, Ok("paged_adamw_8bit")).paged(),
        O::PagedAdamw => Known::new(5, 0, Ok("paged_adamw")).paged(),
        O::Adafactor => Known::new(6, 2, Ok("adafactor")),
        O::AdafactorTorch => Known::new(7, 2, Err(("PyTorch's Adafactor", O::Adafactor))).like(O::Adafactor),
        O::Sgdm => Known::new(8, 5, Err(("SGD with momentum", O::Sgd))),
        O::Sgd => Known::new(9, 6, Ok("sgd")),
        O::AdamwTorchao8bit => Known::new(11, ROUNDED, Ok("adamw_torch_8bit")).only_asked(),
        O::AdamwTorchao4bit => Known::new(12, ROUNDED, Ok("adamw_torch_4bit")).only_asked(),
        O::AdamwTorchaoFp8 => {
            Known::new(13, ROUNDED, Err(("torchao's AdamW in fp8", O::AdamwTorchao8bit))).only_asked()
        }
        O::Muon => Known::new(10, 4, Err(("Muon", O::AdamwFused))).only_asked(),
        O::Lion => Known::new(16, 3, Ok("lion_32bit")).only_asked(),
        O::Lion8bit => Known::new(17, 3, Ok("lion_8bit")).only_asked(),
        O::PagedLion => Known::new(18, 3, Ok("paged_lion_32bit")).paged().only_asked(),
        O::PagedLion8bit => Known::new(19, 3, Ok("paged_lion_8bit")).paged().only_asked(),
        O::Adagrad => Known::new(14, 3, Ok("adagrad")).only_asked(),
        O::AdagradLoop => Known::new(15, 3, Err(("Adagrad one parameter after the other", O::Adagrad))).only_asked(),
    }
}

/// Distance from the asked optimizer: 0 if the update is the same up to rounding.
pub fn distance(asked: Optimizer, now: Optimizer) -> u32 {
    if asked == now { 0 } else { known(now).distance }
}

/// Optimizers that a search tries beside the asked one: none that is nearer to AdamW, unless the asked one's update is
/// AdamW's. Those with states in the host's memory need `offload`.
pub fn searched(asked: Optimizer, offload: bool) -> Vec<Optimizer> {
    let least = known(asked).distance;
    let mut all: Vec<Optimizer> = in_search_order().collect();
    all.retain(|now| {
        let optim = known(*now);
        let is_tried = !optim.is_only_asked || *now == asked;
        is_tried && (offload || !optim.is_paged) && (least <= ROUNDED || optim.distance >= least)
    });
    all
}

/// Optimizers that are tried as single changes: one of those that take the same memory.
pub fn tried() -> impl Iterator<Item = Optimizer> {
    in_search_order().filter(|optim| known(*optim).alike.is_none() && !known(*optim).is_only_asked)
}

/// Name of an optimizer in transformers.
///
/// # Errors
/// Where it has none: what has none, and the optimizer to plan with instead.
pub const fn of_transformers(optim: Optimizer) -> Named {
    known(optim).transformers
}

/// Finds the optimizer of a name in transformers (`OptimizerNames`), its other spellings included.
pub fn named(name: &str) -> Option<Optimizer> {
    let name = match name {
        "adamw_bnb_8bit" => "adamw_8bit",
        "paged_adamw_32bit" => "paged_adamw",
        name => name,
    };
    in_search_order().find(|optim| of_transformers(*optim) == Ok(name))
}

/// Names in transformers of all optimizers that have one.
pub fn names() -> impl Iterator<Item = &'static str> {
    in_search_order().filter_map(|optim| of_transformers(optim).ok())
}

fn in_search_order() -> impl Iterator<Item = Optimizer> {
    let mut all = Optimizer::ALL.to_vec();
    sort_by_key(&mut all, |optim| known(*optim).place);
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_optimizer_has_a_place_of_its_own() {
        let mut places: Vec<u8> = Optimizer::ALL.iter().map(|optim| known(*optim).place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), Optimizer::ALL.len());
    }

    #[test]
    fn a_search_goes_no_nearer_to_adamw_than_what_was_asked() {
        use Optimizer as O;
        assert_eq!(searched(O::Sgd, true), [O::Sgd]);
        assert_eq!(searched(O::Sgdm, true), [O::Sgdm, O::Sgd]);
        let adafactor = [O::Adafactor, O::AdafactorTorch, O::Sgdm, O::Sgd];
        assert_eq!(searched(O::Adafactor, true), adafactor);
        let only_asked = O::ALL.iter().filter(|optim| known(**optim).is_only_asked).count();
        assert_eq!(searched(O::Adamw8bit, true).len(), O::ALL.len() - only_asked);
        assert_eq!(searched(O::Muon, true), [O::Sgdm, O::Sgd, O::Muon]);
        assert!(!searched(O::Adamw, false).contains(&O::PagedAdamw));
        assert_eq!(searched(O::Adamw, false)[0], O::AdamwFused);
    }
}
