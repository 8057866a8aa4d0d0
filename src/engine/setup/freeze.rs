//! What of a model is frozen.

use super::value::of_words;
use super::{Choices, Needs};

/// Parts of a vision-language model; the head is of the language model. A model without parts is a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parts {
    /// The vision tower.
    pub vision: bool,
    /// The module that maps image features into the language model's width.
    pub connector: bool,
    /// The language model.
    pub language: bool,
}

impl Parts {
    /// Returns true if none is in the set.
    pub const fn is_empty(self) -> bool {
        !(self.vision || self.connector || self.language)
    }
}

/// Parameters that are frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Freeze {
    /// These parts; the others are trained in full.
    Parts(Parts),
    /// All of the model: only low-rank adapters are trained.
    Lora,
    /// The same, on weights kept in 4 bits: NF4 with double quantisation by bitsandbytes, after peft's
    /// `prepare_model_for_kbit_training`.
    Qlora,
}

impl Freeze {
    /// Nothing is frozen.
    pub const NONE: Self = Self::parts(false, false, false);
    /// The vision tower is frozen.
    pub const VISION: Self = Self::parts(true, false, false);
    /// The vision tower and the connector are frozen.
    pub const ALL_BUT_LANGUAGE: Self = Self::parts(true, true, false);
    /// The connector is frozen.
    pub const CONNECTOR: Self = Self::parts(false, true, false);
    /// The language model is frozen.
    pub const LANGUAGE: Self = Self::parts(false, false, true);
    /// Only the vision tower is trained.
    pub const ALL_BUT_VISION: Self = Self::parts(false, true, true);
    /// Only the connector is trained.
    pub const ALL_BUT_CONNECTOR: Self = Self::parts(true, false, true);

    /// All values, in the order of menus: every set of parts that leaves something to train, and the adapters.
    pub const ALL: &'static [Self] = &[
        Self::NONE,
        Self::VISION,
        Self::ALL_BUT_LANGUAGE,
        Self::CONNECTOR,
        Self::LANGUAGE,
        Self::ALL_BUT_VISION,
        Self::ALL_BUT_CONNECTOR,
        Self::Lora,
        Self::Qlora,
    ];

    /// Words and where they apply.
    pub const CHOICES: &'static Choices = &Choices {
        names: &[
            "none",
            "vision",
            "all-but-language",
            "connector",
            "language",
            "all-but-vision",
            "all-but-connector",
            "lora",
            "qlora",
        ],
        titles: &[""; Self::ALL.len()],
        needs: &[
            Needs::Nothing,
            Needs::Parts,
            Needs::Parts,
            Needs::Parts,
            Needs::Parts,
            Needs::Parts,
            Needs::Parts,
            Needs::Text,
            Needs::Text,
        ],
    };

    const fn parts(vision: bool, connector: bool, language: bool) -> Self {
        Self::Parts(Parts {
            vision,
            connector,
            language,
        })
    }

    /// Parts of which no weight is trained; all of them beside adapters.
    pub const fn frozen(self) -> Parts {
        match self {
            Self::Parts(frozen) => frozen,
            Self::Lora | Self::Qlora => Parts {
                vision: true,
                connector: true,
                language: true,
            },
        }
    }

    /// Returns true if adapters are trained in place of weights.
    pub const fn is_adapted(self) -> bool {
        matches!(self, Self::Lora | Self::Qlora)
    }

    /// Word in cases, URLs and flags.
    pub fn name(self) -> &'static str {
        let at = Self::ALL.iter().position(|known| *known == self);
        // Freezing all parts without adapters trains nothing, and has no word.
        at.map_or("all", |at| Self::CHOICES.names[at])
    }

    /// Finds a value by its word.
    pub fn named(name: &str) -> Option<Self> {
        let at = Self::CHOICES.names.iter().position(|known| *known == name)?;
        Some(Self::ALL[at])
    }
}

impl Default for Freeze {
    fn default() -> Self {
        Self::NONE
    }
}

of_words!(Freeze);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_that_leaves_something_to_train_has_a_word() {
        let flags = [false, true];
        for vision in flags {
            for (connector, language) in flags.into_iter().flat_map(|c| flags.map(|l| (c, l))) {
                let freeze = Freeze::parts(vision, connector, language);
                let trains = !(vision && connector && language);
                assert_eq!(Freeze::named(freeze.name()) == Some(freeze), trains, "{freeze:?}");
            }
        }
        assert_eq!(Freeze::ALL.len(), Freeze::CHOICES.names.len());
        assert_eq!(Freeze::ALL.len(), Freeze::CHOICES.needs.len());
    }

    #[test]
    fn words_of_cases_keep_their_meaning() {
        let trained = |word: &str| {
            let frozen = Freeze::named(word).expect(word).frozen();
            [!frozen.vision, !frozen.connector, !frozen.language]
        };
        assert_eq!(trained("none"), [true; 3]);
        assert_eq!(trained("vision"), [false, true, true]);
        assert_eq!(trained("all-but-connector"), [false, true, false]);
        assert_eq!(trained("all-but-language"), [false, false, true]);
        assert_eq!(trained("lora"), [false; 3]);
    }
}
