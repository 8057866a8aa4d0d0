//! Selection of a vision tower's hidden states that LLaVA's families make image tokens of.

use crate::model::ModelError;
use crate::model::config::section::Section;

/// Positions of the vision tower's output that become image tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeatureSelect {
    /// All but the class token.
    Default,
    /// All.
    Full,
}

/// Hidden states of a vision tower that become features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureLayers {
    /// Their indices: 0 is the tower's embedding, `n` the output of its block `n`; negative ones are already resolved.
    pub indices: Vec<u64>,
    /// True if the file lists them, in which case they are concatenated along the width, even a single one.
    pub is_list: bool,
}

impl FeatureSelect {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Self::read_or(s, Self::Default)
    }

    /// Reads the strategy, `default` if absent.
    pub(crate) fn read_or(s: &Section, default: Self) -> Result<Self, ModelError> {
        let key = "vision_feature_select_strategy";
        match s.optional_text(key)? {
            None => Ok(default),
            Some("default") => Ok(Self::Default),
            Some("full") => Ok(Self::Full),
            Some(other) => Err(s.wrong(key, &other.into(), "\"default\" or \"full\"")),
        }
    }
}

impl FeatureLayers {
    /// Reads `vision_feature_layer` of a tower of `layers` blocks; `default` counts from the last hidden state.
    pub(crate) fn read(s: &Section, layers: u64, default: u64) -> Result<Self, ModelError> {
        Self::read_key(s, "vision_feature_layer", layers, Self::single(layers, default))
    }

    /// One hidden state, counted from the last.
    pub(crate) fn single(layers: u64, from_last: u64) -> Self {
        Self {
            indices: vec![(layers + 1).saturating_sub(from_last)],
            is_list: false,
        }
    }

    /// Reads one number or a list under `key`, negative ones counted from the last hidden state.
    pub(crate) fn read_key(s: &Section, key: &str, layers: u64, absent: Self) -> Result<Self, ModelError> {
        let Some(value) = s.value(key) else {
            return Ok(absent);
        };
        let states = layers as i64 + 1;
        let from_front = |n: i64| if n < 0 { states.checked_add(n) } else { Some(n) };
        let state = |v: &serde_json::Value| {
            let n = v.as_i64().and_then(from_front).filter(|n| (0..states).contains(n));
            n.map(|n| n as u64)
                .ok_or_else(|| s.wrong(key, v, &format!("a layer from {} to {layers}", -states)))
        };
        Ok(match value.as_array() {
            Some(list) if list.is_empty() => return Err(s.wrong(key, value, "at least one layer")),
            Some(list) => Self {
                indices: list.iter().map(state).collect::<Result<_, _>>()?,
                is_list: true,
            },
            None => Self {
                indices: vec![state(value)?],
                is_list: false,
            },
        })
    }
}
