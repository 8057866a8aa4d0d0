//! What a hub's API says of a repository (`/api/models/ID`), as far as it is of use.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Facts of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryInfo {
    /// Commit that the revision names.
    pub sha: Option<String>,
    /// Parameters of the checkpoint by the type in which they are stored, from the headers of its safetensors.
    pub parameters: Vec<(String, u64)>,
    /// Ids of the models that it was made from.
    pub base_models: Vec<String>,
}

/// Types of safetensors in which one element is one parameter; packed ones hold several, and their scales are no
/// parameters.
const UNPACKED: [&str; 4] = ["F64", "F32", "F16", "BF16"];

impl RepositoryInfo {
    /// Reads an answer of the API; what is missing or of another form is left out.
    pub fn read(answer: &Value) -> Self {
        let by_type = answer.pointer("/safetensors/parameters").and_then(Value::as_object);
        let parameters = by_type.into_iter().flatten();
        Self {
            sha: answer.get("sha").and_then(Value::as_str).map(str::to_owned),
            parameters: parameters
                .filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)))
                .collect(),
            base_models: base_models(answer),
        }
    }

    /// Parameters of the checkpoint; `None` if they are not known, or some are stored packed.
    pub fn plain_parameters(&self) -> Option<u64> {
        let is_plain = self.parameters.iter().all(|(name, _)| UNPACKED.contains(&&**name));
        let all = self
            .parameters
            .iter()
            .try_fold(0u64, |sum, (_, count)| sum.checked_add(*count))?;
        (is_plain && all > 0).then_some(all)
    }
}

/// `base_model` of the model card, which is an id or a list of ids.
fn base_models(answer: &Value) -> Vec<String> {
    let given = answer.pointer("/cardData/base_model");
    match given {
        Some(Value::String(id)) => vec![id.clone()],
        Some(Value::Array(ids)) => ids.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_read_as_far_as_it_goes() {
        let info = RepositoryInfo::read(&json!({
            "sha": "abc",
            "safetensors": {"parameters": {"BF16": 100, "F32": 1}, "total": 101},
            "cardData": {"base_model": ["Qwen/Qwen3-8B"]},
        }));
        assert_eq!(info.plain_parameters(), Some(101));
        assert_eq!(info.base_models, ["Qwen/Qwen3-8B"]);
        assert_eq!(info.sha.as_deref(), Some("abc"));
        let packed = json!({"safetensors": {"parameters": {"U8": 100, "BF16": 1}}});
        assert_eq!(RepositoryInfo::read(&packed).plain_parameters(), None);
        for odd in [
            json!(null),
            json!([]),
            json!({"safetensors": {"parameters": {"BF16": "many"}}, "sha": 3}),
        ] {
            assert_eq!(RepositoryInfo::read(&odd), RepositoryInfo::default());
        }
    }
}
