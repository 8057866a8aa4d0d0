//! The most that a run may take of a card.

use vramscope_engine::units::Bytes;

/// A budget of memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// So many bytes.
    Bytes(Bytes),
    /// This share of the room, at most 1.
    Share(f64),
}

impl Budget {
    /// Parses GiB (`22.5`) or a share (`90%`).
    ///
    /// # Errors
    /// If the text is neither, or not above zero.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "give GiB, such as 22.5, or a share of the card, such as 90%".to_owned();
        let (number, is_share) = match text.trim().strip_suffix('%') {
            Some(number) => (number, true),
            None => (text.trim(), false),
        };
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        match is_share {
            true if number > 0.0 && number <= 100.0 => Ok(Self::Share(number / 100.0)),
            // 2⁵⁰ bytes exceed any device, and fit into an integer.
            false if number > 0.0 && number <= 1_048_576.0 => {
                Ok(Self::Bytes(Bytes::new((number * f64::from(1 << 30)) as u64)))
            }
            _ => Err(wrong()),
        }
    }

    /// Bytes of the budget, of a room with so many.
    pub fn of(self, room: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => Bytes::new((room.get() as f64 * share) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_in_gib_or_a_share() {
        let gib = |n: u64| Bytes::new(n << 30);
        assert_eq!(Budget::parse("24"), Ok(Budget::Bytes(gib(24))));
        assert_eq!(Budget::parse("50 %").map(|budget| budget.of(gib(80))), Ok(gib(40)));
        for wrong in ["0", "-1", "101%", "0%", "much", "NaN", "inf", ""] {
            assert!(Budget::parse(wrong).is_err(), "{wrong}");
        }
    }
}
