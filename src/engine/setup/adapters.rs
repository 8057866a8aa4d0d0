//! Low-rank adapters: their target modules and their type (`peft.LoraConfig`).

use serde::{Deserialize, Serialize};

/// Projections that get adapters (`target_modules`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Given", into = "String")]
pub enum Targets {
    /// `q_proj` to `o_proj` and `gate_proj` to `down_proj` of the language model.
    #[default]
    Projections,
    /// `q_proj`, `k_proj`, `v_proj` and `o_proj` of the language model.
    Attention,
    /// `"all-linear"`: every linear map but the head, those of the vision tower too.
    AllLinear,
    /// Every linear map whose path ends in one of these names.
    Named(Vec<String>),
}

/// Targets as a person writes them: a word, or names in a list or between commas.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Word(String),
    Names(Vec<String>),
}

impl Targets {
    /// The words beside lists of names.
    pub const WORDS: [&'static str; 3] = ["projections", "attention", "all-linear"];

    /// Reads one of [`Targets::WORDS`], or names of modules between commas.
    ///
    /// # Errors
    /// When there is no name, or one holds anything but letters, digits, `_`, `-` and `.`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "projections" => Ok(Self::Projections),
            "attention" => Ok(Self::Attention),
            "all-linear" => Ok(Self::AllLinear),
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

    /// Returns true if the linear map at this dotted path gets an adapter; `language` is true for the language model's
    /// seven projections.
    ///
    /// peft takes a name for the end of a path, and leaves the head out of `all-linear`.
    pub fn take(&self, path: &str, language: bool) -> bool {
        let ends = |name: &str| {
            path.strip_suffix(name)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        match self {
            Self::Projections => language,
            Self::Attention => language && ["q_proj", "k_proj", "v_proj", "o_proj"].into_iter().any(ends),
            Self::AllLinear => !ends("lm_head"),
            Self::Named(names) => names.iter().any(|name| ends(name)),
        }
    }
}

impl TryFrom<Given> for Targets {
    type Error = String;

    fn try_from(given: Given) -> Result<Self, String> {
        match given {
            Given::Word(text) => Self::parse(&text),
            Given::Names(names) => Self::named(names),
        }
    }
}

impl From<Targets> for String {
    fn from(targets: Targets) -> Self {
        match targets {
            Targets::Projections => "projections".into(),
            Targets::Attention => "attention".into(),
            Targets::AllLinear => "all-linear".into(),
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
        assert!(targets.take("visual.blocks.0.attn.proj", false));
        assert!(!targets.take("model.layers.0.self_attn.q_proj", true));
        assert!(!Targets::AllLinear.take("lm_head", false));
        assert!(Targets::Attention.take("model.layers.0.self_attn.o_proj", true));
        assert!(!Targets::Attention.take("vision_tower.layers.0.self_attn.q_proj", false));
    }
}
