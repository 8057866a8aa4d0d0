//! Which modules accelerate wraps for FSDP2 (`fsdp2_prepare_model` of 1.15, with `TRANSFORMER_BASED_WRAP`).

use std::collections::HashMap;

use crate::tape::{Tape, Tensor};

/// The group of the whole model, which has what no other group has.
pub(super) const ROOT: usize = 0;

/// Fewest members of a list of modules that are blocks.
const LEAST_BLOCKS: usize = 4;

/// Names of lists whose members are blocks, however few.
const BLOCKS: [&str; 5] = ["layers", "layer", "blocks", "block", "h"];

/// Modules whose parameters are gathered together.
pub(super) struct Wrapped {
    /// Their paths, in the order in which they run.
    pub modules: Vec<String>,
    pub params: Vec<usize>,
    /// True if their parameters are freed after forward.
    pub reshards: bool,
}

/// What is wrapped, in the order of the model's modules.
pub(super) struct Plan {
    pub groups: Vec<Wrapped>,
}

impl Plan {
    /// Wraps each block (`_no_split_modules`), the table of tokens, the last norm with the head, and the whole model.
    pub fn of(t: &Tape, params: &[Tensor], reshards: bool) -> Self {
        let paths: Vec<String> = params.iter().map(|param| t.path_of(param).replace("..", ".")).collect();
        let blocks = Blocks::of(&paths);
        let module = |at: usize| paths[at].rsplit_once('.').map_or("", |(module, _)| module);
        let table = (0..params.len()).find(|&at| t.is_table(&params[at]) && is_of_tokens(module(at)));
        let head = (0..params.len()).find(|&at| module(at).rsplit('.').next() == Some("lm_head"));
        let norm = (0..params.len()).find(|&at| is_last_norm(module(at)));
        let mut groups = vec![Wrapped {
            modules: Vec::new(),
            params: Vec::new(),
            reshards: false,
        }];
        let mut known: HashMap<String, usize> = HashMap::new();
        for (at, path) in paths.iter().enumerate() {
            let (name, modules, frees) = match blocks.block(path) {
                Some(block) => (block.to_owned(), vec![block.to_owned()], reshards),
                None if head.is_some() && Some(at) == table => {
                    (module(at).to_owned(), vec![module(at).to_owned()], reshards)
                }
                None if Some(module(at)) == norm.map(module) || Some(at) == head || Some(at) == table => {
                    let mut tail: Vec<String> = match head {
                        Some(_) => Vec::new(),
                        None => table.map(module).map(str::to_owned).into_iter().collect(),
                    };
                    tail.extend(norm.map(module).map(str::to_owned));
                    tail.push("lm_head".to_owned());
                    ("the tail".to_owned(), tail, false)
                }
                None => {
                    groups[ROOT].params.push(at);
                    continue;
                }
            };
            let group = *known.entry(name).or_insert_with(|| {
                groups.push(Wrapped {
                    modules,
                    params: Vec::new(),
                    reshards: frees,
                });
                groups.len() - 1
            });
            groups[group].params.push(at);
        }
        Self { groups }
    }
}

/// True for the table that `get_input_embeddings` returns.
fn is_of_tokens(module: &str) -> bool {
    matches!(
        module.rsplit('.').next(),
        Some("embed_tokens" | "wte" | "word_embeddings" | "embed_in" | "tok_embeddings" | "embeddings")
    )
}

/// True for a norm that is a child of the base model (`_find_final_norm`): not in models of text and images, whose
/// language model is one level below.
fn is_last_norm(module: &str) -> bool {
    let parts: Vec<&str> = module.split('.').collect();
    matches!(
        parts[..],
        [
            "model" | "transformer" | "gpt_neox",
            "norm" | "ln_f" | "final_layernorm" | "final_layer_norm" | "norm_f"
        ]
    )
}

/// Lists of blocks.
struct Blocks {
    /// Number of members of each list.
    lists: HashMap<String, usize>,
}

impl Blocks {
    fn of(paths: &[String]) -> Self {
        let mut lists: HashMap<String, usize> = HashMap::new();
        for (list, index, _) in paths.iter().flat_map(|path| members(path)) {
            let count = lists.entry(list.to_owned()).or_default();
            *count = (*count).max(index + 1);
        }
        Self { lists }
    }

    /// The outermost block that a parameter is in.
    fn block<'a>(&self, path: &'a str) -> Option<&'a str> {
        let is_block = |list: &str| {
            self.lists[list] >= LEAST_BLOCKS || list.rsplit('.').next().is_some_and(|name| BLOCKS.contains(&name))
        };
        members(path)
            .find(|(list, _, _)| is_block(list))
            .map(|(_, _, member)| member)
    }
}

/// Members of lists on a path, outermost first: the list's path, the index, and the member's path.
fn members(path: &str) -> impl Iterator<Item = (&str, usize, &str)> {
    let parts = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    let mut from = 0;
    parts.filter_map(move |to| {
        let part = &path[from..to];
        let start = from;
        from = to + 1;
        let index = part.parse().ok()?;
        Some((path[..start].strip_suffix('.')?, index, &path[..to]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_outermost_members_of_long_lists() {
        let mut paths: Vec<String> = (0..4)
            .map(|at| format!("model.layers.{at}.mlp.experts.1.up.weight"))
            .collect();
        paths.push("visual.merger.mlp.0.weight".to_owned());
        let blocks = Blocks::of(&paths);
        assert_eq!(blocks.block(&paths[2]), Some("model.layers.2"));
        assert_eq!(blocks.block(&paths[4]), None);
    }

    #[test]
    fn the_last_norm_is_that_of_a_text_model() {
        assert!(is_last_norm("model.norm") && is_last_norm("transformer.ln_f"));
        assert!(!is_last_norm("model.language_model.norm") && !is_last_norm("model.layers.0.norm"));
    }
}
