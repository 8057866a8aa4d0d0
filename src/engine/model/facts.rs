//! Facts that hold for all models of a family: the files that it reads, and the models that are known by name.

/// Facts that hold for all models of a family.
pub(crate) struct Facts {
    /// Values of `model_type` in a `config.json`, in the order in which messages list them.
    pub model_types: &'static [ModelType],
    /// Models known by name.
    pub catalogue: &'static [Entry],
    /// Keys of the `config.json` that settings replace.
    pub overrides: &'static [Override],
    /// Source of `use_cache`.
    pub use_cache: UseCache,
}

/// A value of `model_type` in a `config.json`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelType {
    /// The value.
    pub name: &'static str,
    /// Class of transformers 5.17 that is simulated, then other names that files use for it: names of remote code, and
    /// for classifiers those of the checkpoints that they are fine-tuned from.
    pub classes: &'static [&'static str],
}

impl ModelType {
    /// Names a type and its classes.
    pub const fn new(name: &'static str, classes: &'static [&'static str]) -> Self {
        Self { name, classes }
    }
}

/// Key of a `config.json` that a setting of a setup or of a case replaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Override {
    /// `image` or `frames` of a setup; `layers`, `cross` or `patch` of a case.
    pub setting: &'static str,
    /// Section that holds the key; `None` for the file itself.
    pub section: Option<&'static str>,
    /// The key.
    pub key: &'static str,
}

/// Source of the `use_cache` that the language model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UseCache {
    /// The language model's configuration; an absent value counts as false, as transformers' `Trainer` sets it.
    OfText,
    /// The whole model's configuration; an absent value is true.
    OfModel,
}

/// A model known by name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Name in menus and cases; a checkpoint's id on the Hugging Face hub has a slash.
    pub name: &'static str,
    /// Checkpoint that a short name means; `None` for a published one, and for a reference measurement without an exact
    /// checkpoint: a combination that nobody published, and InternVL with embeddings tied to the head, which the
    /// published ones are not (12 to 17% more parameters).
    pub checkpoint: Option<&'static str>,
    /// The `config.json`.
    pub config: &'static str,
}

/// Makes the entries of a family from their names, short ones with the checkpoint that they mean. The file of each is
/// `catalogue/NAME.json` in the family's folder.
macro_rules! catalogue {
    (@checkpoint) => {
        None
    };
    (@checkpoint $id:literal) => {
        Some($id)
    };
    ($($name:literal $(= $id:literal)?),+ $(,)?) => {
        &[$($crate::model::facts::Entry {
            name: $name,
            checkpoint: $crate::model::facts::catalogue!(@checkpoint $($id)?),
            config: include_str!(concat!("catalogue/", $name, ".json")),
        }),+]
    };
}
pub(crate) use catalogue;
