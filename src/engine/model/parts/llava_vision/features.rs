//! Selection of a vision tower's hidden states that LLaVA-1.5 and LLaVA-NeXT make image tokens of.

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

impl FeatureSelect {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let key = "vision_feature_select_strategy";
        match s.optional_text(key)? {
            None | Some("default") => Ok(Self::Default),
            Some("full") => Ok(Self::Full),
            Some(other) => Err(s.wrong(key, &other.into(), "\"default\" or \"full\"")),
        }
    }
}

/// Reads `vision_feature_layer`, one number or a list, negative ones counted from the last hidden state.
pub(crate) fn feature_layers(s: &Section, layers: u64) -> Result<Vec<u64>, ModelError> {
    let key = "vision_feature_layer";
    let Some(value) = s.value(key) else {
        return Ok(vec![layers.saturating_sub(1)]);
    };
    let states = layers as i64 + 1;
    let from_front = |n: i64| if n < 0 { states.checked_add(n) } else { Some(n) };
    let state = |v: &serde_json::Value| {
        let n = v.as_i64().and_then(from_front).filter(|n| (0..states).contains(n));
        n.map(|n| n as u64)
            .ok_or_else(|| s.wrong(key, v, &format!("a layer from {} to {layers}", -states)))
    };
    match value.as_array() {
        Some(list) if list.is_empty() => Err(s.wrong(key, value, "at least one layer")),
        Some(list) => list.iter().map(state).collect(),
        None => Ok(vec![state(value)?]),
    }
}
