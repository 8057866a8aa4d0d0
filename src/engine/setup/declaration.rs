//! What a declaration says of a setting, and the macros that make types of declarations.

use super::{Change, Checkpointing, Kind, Setting, Setup, TrainerKind};

/// Declaration of one setting. Frontends, cases, URLs, sweeps and exports take all that they know of it from here.
#[derive(Debug)]
pub struct Declaration {
    /// Key in cases and URLs; also of the phrases `setup.KEY` (label), `help.KEY` and `choice.KEY_VALUE`. The flag is
    /// the same with `-` for `_`.
    pub key: &'static str,
    /// Form of the value.
    pub kind: Kind,
    /// Help of the flag, in English; the default is added.
    pub about: &'static str,
    /// What applies if a setting that is absent by default is not given.
    pub absent: &'static str,
    /// Placeholder of the value in the flag's help; that of the kind if empty.
    pub value_name: &'static str,
    /// Placeholder of the empty control.
    pub example: &'static str,
    /// Group of controls.
    pub group: Group,
    /// Property that a model must have for the setting to apply.
    pub needs: Needs,
    /// Other setting that must be in use for the setting to apply.
    pub depends: Depends,
    /// True if the setting applies to training only.
    pub is_of_training: bool,
    /// Largest whole number, beyond which the results would mean nothing for a real run; `None` if another rule limits
    /// it.
    pub most: Option<u64>,
    /// Distance between two values that a control steps to.
    pub step: u64,
    /// Smallest value that a control steps to.
    pub start: u64,
    /// Other values that are tried as single changes of a setup.
    pub alternatives: Alternatives,
    /// Largest value of a sweep, if the setting can be swept.
    pub sweep: Option<u64>,
    /// What the configuration of a training tool holds of the setting.
    pub export: Export,
}

impl Declaration {
    /// Declaration of a setting of which nothing but key and type is special.
    pub(super) const fn of(key: &'static str, kind: Kind) -> Self {
        Self {
            key,
            kind,
            about: "",
            absent: "",
            value_name: "",
            example: "",
            group: Group::Finer,
            needs: Needs::Nothing,
            depends: Depends::Nothing,
            is_of_training: false,
            most: None,
            step: 1,
            start: 1,
            alternatives: Alternatives::None,
            sweep: None,
            export: Export::Noted,
        }
    }
}

/// Group of controls, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Size of a micro-batch.
    Batch,
    /// Images and frames of a sample.
    Images,
    /// Patch grid.
    Grid,
    /// Images of different sizes.
    ImageSizes,
    /// Samples of different lengths.
    Lengths,
    /// Number format.
    Precision,
    /// Optimizer.
    Optimizer,
    /// Trained parameters.
    Parameters,
    /// Low-rank adapters.
    Adapters,
    /// Computation of a step.
    Step,
    /// Loss and outputs of the language model.
    Loss,
    /// Settings that few people change.
    Finer,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 12] = [
        Self::Batch,
        Self::Images,
        Self::Grid,
        Self::ImageSizes,
        Self::Lengths,
        Self::Precision,
        Self::Optimizer,
        Self::Parameters,
        Self::Adapters,
        Self::Step,
        Self::Loss,
        Self::Finer,
    ];

    /// Settings of the group, in the order of declaration.
    pub fn settings(self) -> impl Iterator<Item = Setting> {
        let all = Setting::ALL.iter().copied();
        all.filter(move |setting| setting.declaration().group == self)
    }
}

/// Property that a model must have for a setting or one of its values to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Applies to every model.
    Nothing,
    /// Text.
    Text,
    /// Any number of images per sample.
    ImageCount,
    /// Images of another size than the configuration's.
    ImageSize,
    /// A patch grid for each image.
    Grid,
    /// Frames of a video.
    Frames,
    /// A vision tower and a connector.
    Parts,
}

/// Another setting that must be in use for a setting to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depends {
    /// Applies whatever the other settings are.
    Nothing,
    /// Lengths of the samples.
    Lengths,
    /// Activation checkpointing.
    Checkpoints,
    /// Low-rank adapters.
    Adapters,
    /// Autocast.
    Autocast,
    /// Frozen weights under autocast.
    FrozenUnderAutocast,
    /// transformers' `Trainer`, or one that is derived from it.
    Trainer,
    /// A trainer that leaves out positions without labels.
    CountedLabels,
    /// A trainer that compares the model with a reference model.
    Reference,
    /// A trainer that generates what it trains on.
    Generation,
}

impl Depends {
    /// Returns true if the other setting is in use.
    pub const fn met_by(self, setup: &Setup) -> bool {
        match self {
            Self::Nothing => true,
            Self::Lengths => !setup.lengths.is_empty(),
            Self::Checkpoints => !matches!(setup.ckpt, Checkpointing::None),
            Self::Adapters => setup.freeze.is_adapted(),
            Self::Trainer => setup.trainer.is_derived(),
            Self::CountedLabels => setup.trainer.counts_labels(),
            Self::Reference => setup.trainer.is_dpo() || matches!(setup.trainer, TrainerKind::TrlGrpo),
            Self::Generation => matches!(setup.trainer, TrainerKind::TrlGrpo),
            Self::Autocast => setup.casts_weights(),
            Self::FrozenUnderAutocast => setup.casts_weights() && setup.has_frozen_weights(),
        }
    }
}

/// Other values that are tried as single changes of a setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alternatives {
    /// None: another value is another task.
    None,
    /// Half of the present one.
    Half,
    /// Half and double of the present one.
    HalfAndDouble,
    /// Every value that the type has.
    Each,
}

/// What the configuration of a training tool holds of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Export {
    /// Nothing: it describes the samples.
    OfSamples,
    /// The tool's own name for it, where it has one.
    Written,
    /// A comment that names it, since no tool has a name for it.
    Noted,
}

impl Setting {
    /// Key in cases and URLs.
    pub const fn key(self) -> &'static str {
        self.declaration().key
    }

    /// Finds a setting by its key.
    pub fn named(key: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|setting| setting.key() == key)
    }

    /// All settings, by group.
    pub fn by_group() -> impl Iterator<Item = Self> {
        Group::ALL.into_iter().flat_map(Group::settings)
    }
}

impl Change {
    /// A copy of the setup with this change.
    #[must_use]
    pub fn apply(&self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        self.put(&mut setup);
        setup
    }
}

/// Declares the settings: `Variant(field: Type = default) { property: value, … }`, with the properties of a
/// [`Declaration`] that differ from [`Declaration::of`].
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $Variant:ident($field:ident: $type:ty = $default:expr) { $($property:ident: $value:expr),* $(,)? }
    )+) => {
        /// One training configuration. Field names are the vocabulary of cases.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Setup {
            $( $(#[doc = $doc])+ pub $field: $type, )+
        }

        impl Default for Setup {
            fn default() -> Self {
                Self { $( $field: $default, )+ }
            }
        }

        /// A setting of a [`Setup`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Setting {
            $( $(#[doc = $doc])+ $Variant, )+
        }

        /// A value for one setting of a [`Setup`].
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum Change {
            $( $(#[doc = $doc])+ $Variant($type), )+
        }

        impl Setting {
            /// All settings, in the order of declaration: that of URLs and of a setup's JSON.
            pub const ALL: &'static [Self] = &[$( Self::$Variant ),+];

            /// Declaration of the setting.
            pub const fn declaration(self) -> &'static Declaration {
                static ALL: [Declaration; Setting::ALL.len()] = [$( Declaration {
                    $( $property: $value, )*
                    ..Declaration::of(stringify!($field), <$type as Value>::KIND)
                } ),+];
                &ALL[self as usize]
            }

            /// The setting's value in a setup.
            pub fn of(self, setup: &Setup) -> Change {
                match self {
                    $( Self::$Variant => Change::$Variant(setup.$field.clone()), )+
                }
            }

            /// A change to a value as a case holds it.
            ///
            /// # Errors
            /// If the value is not of the setting's type.
            pub fn change(self, value: serde_json::Value) -> Result<Change, serde_json::Error> {
                Ok(match self {
                    $( Self::$Variant => Change::$Variant(serde_json::from_value(value)?), )+
                })
            }

            /// A change to a whole number, for settings that are one.
            pub fn count(self, count: u64) -> Option<Change> {
                match self {
                    $( Self::$Variant => <$type as Value>::of_count(count).map(Change::$Variant), )+
                }
            }

            /// Changes to each value, for settings that have few.
            pub fn every(self) -> Vec<Change> {
                match self {
                    $( Self::$Variant => <$type as Value>::every().into_iter().map(Change::$Variant).collect(), )+
                }
            }
        }

        impl Change {
            /// The setting that changes.
            pub const fn setting(&self) -> Setting {
                match self {
                    $( Self::$Variant(_) => Setting::$Variant, )+
                }
            }

            /// Puts the value into a setup.
            pub fn put(&self, setup: &mut Setup) {
                match self {
                    $( Self::$Variant(value) => setup.$field.clone_from(value), )+
                }
            }

            /// The value, for settings that are a whole number; `None` if it is absent.
            pub fn count(&self) -> Option<u64> {
                match self {
                    $( Self::$Variant(value) => value.count(), )+
                }
            }

            /// The value as a person types it; empty if it is absent.
            pub fn text(&self) -> String {
                match self {
                    $( Self::$Variant(value) => value.text(), )+
                }
            }
        }
    };
}
pub(super) use settings;

/// Declares the words of choices: `Variant = "word"`, followed by `as "title"` if the library's own name for it stands
/// in every language, and by `needs PROPERTY` if it applies only to models with a property.
macro_rules! choices {
    ($(
        $(#[$meta:meta])+
        pub enum $Name:ident {
            $( $(#[$variant_meta:meta])+ $Variant:ident = $word:literal $(as $title:literal)? $(needs $needs:ident)?, )+
        }
    )+) => {$(
        $(#[$meta])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $Name {
            $( $(#[$variant_meta])+ #[serde(rename = $word)] $Variant, )+
        }

        impl $Name {
            /// All values, in the order of menus.
            pub const ALL: &'static [Self] = &[$( Self::$Variant ),+];

            /// Words and where they apply.
            pub const CHOICES: &'static Choices = &Choices {
                names: &[$( $word ),+],
                titles: &[$( concat!($( $title )?) ),+],
                needs: &[$( choices!(@needs $( $needs )?) ),+],
            };

            /// Word in cases, URLs and flags.
            pub const fn name(self) -> &'static str {
                Self::CHOICES.names[self as usize]
            }

            /// Finds a value by its word.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }

        impl Value for $Name {
            const KIND: Kind = Kind::Choice(Self::CHOICES);

            fn text(&self) -> String {
                self.name().to_owned()
            }

            fn every() -> Vec<Self> {
                Self::ALL.to_vec()
            }
        }
    )+};
    (@needs) => { Needs::Nothing };
    (@needs $needs:ident) => { Needs::$needs };
}
pub(super) use choices;
