//! Groups of parameters: by weight decay, as transformers' `Trainer` makes them for its optimizer, and by type.

use std::collections::HashSet;

use crate::tape::{Tape, Tensor};

/// Splits parameters into those with weight decay and those without (`Trainer.get_decay_parameter_names`), each in order.
pub(super) fn by_decay(t: &Tape, params: Vec<Tensor>) -> [Vec<Tensor>; 2] {
    let paths: Vec<String> = params
        .iter()
        .map(|param| t.path_of(param).to_ascii_lowercase())
        .collect();
    let known: HashSet<&str> = paths.iter().map(String::as_str).collect();
    // Of the modules with a weight of one dimension, only a layer norm has a bias too.
    let is_of_layer_norm = |param: &Tensor, path: &str| {
        let module = path.strip_suffix(".weight").unwrap_or_default();
        param.dim() == 1 && known.contains(format!("{module}.bias").as_str())
    };
    let decays: Vec<bool> = params
        .iter()
        .zip(&paths)
        .map(|(param, path)| !is_excluded(path) && !is_of_layer_norm(param, path))
        .collect();
    let (with, without): (Vec<_>, Vec<_>) = params.into_iter().zip(decays).partition(|(_, decays)| *decays);
    [with, without].map(|group| group.into_iter().map(|(param, _)| param).collect())
}

/// Groups tensors by type, each in order (`_group_tensors_by_device_and_dtype`). The types come in the order in which an
/// `unordered_map` of libstdc++ iterates over two: the latest first.
pub(super) fn by_dtype(tensors: &[Tensor]) -> Vec<Vec<&Tensor>> {
    let mut groups: Vec<Vec<&Tensor>> = Vec::new();
    for tensor in tensors {
        match groups.iter_mut().find(|group| group[0].dtype() == tensor.dtype()) {
            Some(group) => group.push(tensor),
            None => groups.insert(0, vec![tensor]),
        }
    }
    groups
}

/// Returns true if a name, in lower case, has one of the patterns of `get_decay_parameter_names`.
fn is_excluded(path: &str) -> bool {
    let is_norm = |part: &str| part == "norm" || part.ends_with("_norm");
    ["bias", "layernorm", "rmsnorm"].iter().any(|word| path.contains(word)) || path.split('.').any(is_norm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_norms_and_biases_are_excluded() {
        for excluded in [
            "model.layers.0.input_layernorm.weight",
            "model.norm.weight",
            "model.layers.0.self_attn.q_norm.weight",
            "model.layers.0.self_attn.q_proj.bias",
            "model.layers.0.linear_attn.dt_bias",
        ] {
            assert!(is_excluded(excluded), "{excluded}");
        }
        for included in [
            "visual.blocks.0.norm1.weight",
            "model.embed_tokens.weight",
            "h.0.ln_1.weight",
        ] {
            assert!(!is_excluded(included), "{included}");
        }
    }
}
