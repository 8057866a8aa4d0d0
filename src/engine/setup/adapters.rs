//! Low-rank adapters: their target modules and their type (`peft.LoraConfig`).

use serde::{Deserialize, Deserializer, Serialize};

use super::value::of_text_or_list;

/// Projections that get adapters (`target_modules`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(into = "String")]
pub enum Targets {
    /// `q_proj` to `o_proj` and `gate_proj` to `down_proj` of the language model.
    #[default]
    Projections,
    /// `q_proj`, `k_proj`, `v_proj` and `o_proj` of the language model.
    Attention,
    /// `"all-linear"`: every linear layer but the head, those of the vision tower too.
    AllLinear,
    /// Every linear layer of the language model but the head: what tools make of `"all-linear"` beside a frozen tower.
    LanguageModel,
    /// Every linear layer whose path ends in one of these names.
    Named(Vec<String>),
}

/// Place of a linear layer in a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapPlace {
    /// One of the language model's seven projections.
    Projection,
    /// Another linear layer of the language model.
    LanguageModel,
    /// The head, or a linear layer outside the language model.
    Elsewhere,
}

impl Targets {
    /// The words beside lists of names.
    pub const WORDS: [&'static str; 4] = ["projections", "attention", "language-model", "all-linear"];

    /// Reads one of [`Targets::WORDS`], or names of modules between commas.
    ///
    /// # Errors
    /// When there is no name, or one holds anything but letters, digits, `_`, `-` and `.`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "projections" => Ok(Self::Projections),
            "attention" => Ok(Self::Attention),
            "all-linear" => Ok(Self::AllLinear),
            "language-model" => Ok(Self::LanguageModel),
            names => Self::named(names.split(',').map(str::trim).map(String::from).collect()),
        }
    }

    fn named(names: Vec<String>) -> Result<Self, String> {
        let good = |name: &String| {
            let mut chars = name.chars();
            !name.is_empty() && chars.all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        };
        if !names.is_empty() && names.iter().all(good) {
            return Ok(Self::Named(names));
        }
        Err(format!(
            "`lora_targets` takes {}, or names of modules such as q_proj,v_proj",
            Self::WORDS.join(", ")
        ))
    }

    /// Returns true if the linear layer at this dotted path, in this place, gets an adapter.
    ///
    /// peft takes a name for the end of a path, and leaves the head out of `all-linear`.
    pub(crate) fn take(&self, path: &str, place: MapPlace) -> bool {
        let is_projection = place == MapPlace::Projection;
        let ends = |name: &str| {
            path.strip_suffix(name)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        match self {
            Self::Projections => is_projection,
            Self::Attention => is_projection && ["q_proj", "k_proj", "v_proj", "o_proj"].into_iter().any(ends),
            Self::AllLinear => !ends("lm_head"),
            Self::LanguageModel => place != MapPlace::Elsewhere,
            Self::Named(names) => names.iter().any(|name| ends(name)),
        }
    }
}

impl<'de> Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        of_text_or_list(from, Self::parse, Self::named)
    }
}

impl From<Targets> for String {
    fn from(targets: Targets) -> Self {
        match targets {
            Targets::Projections => "projections".into(),
            Targets::Attention => "attention".into(),
            Targets::AllLinear => "all-linear".into(),
            Targets::LanguageModel => "language-model".into(),
            Targets::Named(names) => names.join(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_words_or_names() {
        for word in Targets::WORDS {
            assert_eq!(String::from(Targets::parse(word).unwrap()), word);
        }
        let names = Targets::Named(vec!["q_proj".into(), "mlp.fc1".into()]);
        assert_eq!(Targets::parse(" q_proj, mlp.fc1").as_ref(), Ok(&names));
        let listed: Targets = serde_json::from_str(r#"["q_proj", "mlp.fc1"]"#).unwrap();
        assert_eq!(listed, names);
        for bad in ["", "q_proj,", "q proj", "q_proj;v_proj"] {
            assert!(Targets::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_is_the_end_of_a_path() {
        let targets = Targets::parse("proj").unwrap();
        assert!(targets.take("visual.blocks.0.attn.proj", MapPlace::Elsewhere));
        assert!(!targets.take("model.layers.0.self_attn.q_proj", MapPlace::Projection));
        assert!(!Targets::AllLinear.take("lm_head", MapPlace::Elsewhere));
        assert!(Targets::Attention.take("model.layers.0.self_attn.o_proj", MapPlace::Projection));
        assert!(!Targets::Attention.take("vision_tower.layers.0.self_attn.q_proj", MapPlace::Elsewhere));
    }
}
