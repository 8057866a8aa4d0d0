//! Which modules accelerate wraps for FSDP (`fsdp2_prepare_model` and `prepare_model` of 1.15, with
//! `TRANSFORMER_BASED_WRAP`).

use std::collections::{HashMap, HashSet};

use super::super::units::{LEAST_BLOCKS, pattern};
use crate::Model;
use crate::tape::{Tape, Tensor};

/// The group of the whole model, which has what no other group has.
pub(super) const ROOT: usize = 0;

/// Names of lists whose members are blocks, however few.
const BLOCKS: [&str; 5] = ["layers", "layer", "blocks", "block", "h"];

/// Name of the group of the last norm and the head, which is no module's path.
const TAIL: &str = "the tail";

/// Modules whose parameters are gathered together.
pub(super) struct Wrapped {
    /// Their paths, in the order in which they run.
    pub modules: Vec<String>,
    pub params: Vec<usize>,
    /// True if their parameters are freed after forward.
    pub reshards: bool,
}

/// What is wrapped, in the order of the model's modules.
pub(in super::super) struct Plan {
    pub(super) groups: Vec<Wrapped>,
    /// Groups that are wrapped once all blocks are: the table of tokens, and the last norm with the head.
    late: Vec<usize>,
    /// The table of tokens, and the head's weight.
    named: Vec<usize>,
}

impl Plan {
    /// FSDP2: wraps each module that transformers keeps whole (`_no_split_modules`), the table of tokens, the last norm with
    /// the head, and the whole model. In a model that peft wraps, no last norm is found (`_find_final_norm`).
    pub fn of(t: &Tape, model: &Model, params: &[Tensor], (reshards, adapts): (bool, bool)) -> Self {
        Self::of_paths(t, (model, params), paths(t, params), (reshards, adapts))
    }

    /// The same of a model in a scope of its own: ms-swift prepares the one that it compares with as the one that it trains
    /// (`prepare_fsdp` of `swift/rlhf_trainers/utils.py`).
    pub fn within(t: &Tape, scope: &str, (model, params): (&Model, &[Tensor]), reshards: bool) -> Self {
        let own = |path: String| own_path(&path, scope).to_owned();
        let paths = paths(t, params).into_iter().map(own).collect();
        Self::of_paths(t, (model, params), paths, (reshards, false))
    }

    fn of_paths(
        t: &Tape,
        (model, params): (&Model, &[Tensor]),
        paths: Vec<String>,
        (reshards, adapts): (bool, bool),
    ) -> Self {
        let blocks = Blocks::of(model, &paths);
        let table = (0..params.len()).find(|&at| t.is_table(&params[at]) && is_of_tokens(module(&paths[at])));
        let is_of_head = |at: usize| module(&paths[at]).rsplit('.').next() == Some("lm_head");
        // A head that is the table has a bias alone.
        let head = (0..params.len()).find(|&at| is_of_head(at) && paths[at].ends_with(".weight"));
        let norm = (0..params.len()).find(|&at| !adapts && is_last_norm(module(&paths[at])));
        let bare = t.bare_norms();
        let bare = bare
            .iter()
            .map(String::as_str)
            .find(|path| !adapts && is_last_norm(path));
        let norm = norm.map(|at| module(&paths[at])).or(bare);
        let mut groups = Groups::default();
        for (at, path) in paths.iter().enumerate() {
            let own = module(path);
            match blocks.block(path) {
                Some(block) => groups.put(at, block, || (vec![block.to_owned()], reshards)),
                None if head.is_some() && Some(at) == table => groups.put(at, own, || (vec![own.to_owned()], reshards)),
                None if Some(own) == norm || is_of_head(at) || Some(at) == table => {
                    groups.put(at, TAIL, || {
                        let mut tail: Vec<String> = match head {
                            Some(_) => Vec::new(),
                            None => table.map(|at| module(&paths[at]).to_owned()).into_iter().collect(),
                        };
                        tail.extend(norm.map(str::to_owned));
                        tail.push("lm_head".to_owned());
                        (tail, false)
                    });
                }
                None => groups.list[ROOT].params.push(at),
            }
        }
        groups.order(&paths);
        if let (None, Some(table)) = (head, table) {
            // The head, which is the table, comes behind the norm in the list of what is wrapped.
            for group in groups.list.iter_mut().filter(|group| group.params.contains(&table)) {
                group.params.sort_by_key(|&at| (is_of_head(at), at == table));
            }
        }
        let alone = table.filter(|_| head.is_some()).map(|at| module(&paths[at]));
        let late = [alone, Some(TAIL)].into_iter().flatten();
        let late = late.filter_map(|name| groups.known.get(name).copied()).collect();
        Self {
            groups: groups.list,
            late,
            named: table.into_iter().chain(head).collect(),
        }
    }

    /// A loop of one's own: wraps each member of a list of at least four modules, of nested lists the innermost, and the whole
    /// model.
    pub fn of_loop(t: &Tape, params: &[Tensor], reshards: bool) -> Self {
        let paths = paths(t, params);
        let blocks = Blocks::with(None, &paths);
        let mut groups = Groups::default();
        groups.list[ROOT].reshards = reshards;
        for (at, path) in paths.iter().enumerate() {
            match blocks.innermost(path) {
                Some(block) => groups.put(at, block, || (vec![block.to_owned()], reshards)),
                None => groups.list[ROOT].params.push(at),
            }
        }
        groups.order(&paths);
        groups.all()
    }

    /// True if parameters of blocks are freed after forward.
    pub(super) fn reshards(&self) -> bool {
        self.groups.iter().any(|group| group.reshards)
    }

    /// The whole of a model of so many parameters: TRL's `prepare_fsdp` wraps the one that it compares with so.
    pub(super) fn of_compared(&self, params: usize) -> Self {
        let reshards = self.reshards();
        let root = Wrapped {
            modules: Vec::new(),
            params: (0..params).collect(),
            reshards,
        };
        Self {
            groups: vec![root],
            late: Vec::new(),
            named: Vec::new(),
        }
    }

    /// True for the table of tokens and the head's weight.
    pub(super) fn is_named(&self, param: usize) -> bool {
        self.named.contains(&param)
    }

    /// The groups in the order in which `fully_shard` is called for them: blocks, what accelerate wraps behind them, and the
    /// whole model.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Wrapped> {
        let blocks = (ROOT + 1..self.groups.len()).filter(|at| !self.late.contains(at));
        let order = blocks.chain(self.late.iter().copied()).chain([ROOT]);
        order.map(|at| &self.groups[at])
    }

    /// FSDP1: wraps each module that transformers keeps whole, each map of an adapter (`fsdp_auto_wrap_policy` of peft), and
    /// the whole model.
    pub fn flat(t: &Tape, model: &Model, params: &[Tensor]) -> Self {
        let paths = paths(t, params);
        let blocks = Blocks::of(model, &paths);
        let mut groups = Groups::default();
        for (at, path) in paths.iter().enumerate() {
            let own = module(path);
            match blocks.block(path) {
                _ if is_of_adapter(own) => groups.put(at, own, || (vec![own.to_owned()], true)),
                Some(block) => groups.put(at, block, || (vec![block.to_owned()], true)),
                None => groups.list[ROOT].params.push(at),
            }
        }
        groups.all()
    }
}

/// Groups that are being made, each known by a name.
struct Groups {
    list: Vec<Wrapped>,
    known: HashMap<String, usize>,
}

impl Default for Groups {
    /// The root alone.
    fn default() -> Self {
        let root = Wrapped {
            modules: Vec::new(),
            params: Vec::new(),
            reshards: false,
        };
        Self {
            list: vec![root],
            known: HashMap::new(),
        }
    }
}

impl Groups {
    /// Orders parameters as `fully_shard` finds modules: those within a module before it (`_get_managed_modules`).
    fn order(&mut self, paths: &[String]) {
        for group in &mut self.list {
            group.params = children_first(&group.params, paths, 0);
        }
    }

    /// A plan of all groups, none of which is late.
    fn all(self) -> Plan {
        Plan {
            groups: self.list,
            late: Vec::new(),
            named: Vec::new(),
        }
    }

    /// Puts a parameter into a group, which has these modules, and true if it reshards.
    fn put(&mut self, param: usize, name: &str, new: impl FnOnce() -> (Vec<String>, bool)) {
        let list = &mut self.list;
        let group = *self.known.entry(name.to_owned()).or_insert_with(|| {
            let (modules, reshards) = new();
            list.push(Wrapped {
                modules,
                params: Vec::new(),
                reshards,
            });
            list.len() - 1
        });
        self.list[group].params.push(param);
    }
}

fn paths(t: &Tape, params: &[Tensor]) -> Vec<String> {
    params.iter().map(|param| t.path_of(param).replace("..", ".")).collect()
}

/// Parameters of a module `depth` names deep, those of modules within it first.
fn children_first(params: &[usize], paths: &[String], depth: usize) -> Vec<usize> {
    let child = |at: usize| module(&paths[at]).split('.').filter(|name| !name.is_empty()).nth(depth);
    let mut children: Vec<&str> = Vec::new();
    for name in params.iter().filter_map(|&at| child(at)) {
        if !children.contains(&name) {
            children.push(name);
        }
    }
    let within = |name: &str| -> Vec<usize> {
        let params = params.iter().copied().filter(|&at| child(at) == Some(name));
        children_first(&params.collect::<Vec<usize>>(), paths, depth + 1)
    };
    let mut ordered: Vec<usize> = children.iter().flat_map(|name| within(name)).collect();
    ordered.extend(params.iter().copied().filter(|&at| child(at).is_none()));
    ordered
}

/// A path without the scope that the model has for itself.
pub(super) fn own_path<'a>(path: &'a str, scope: &str) -> &'a str {
    let own = path.strip_prefix(scope).filter(|_| !scope.is_empty());
    own.map_or(path, |own| own.trim_start_matches('.'))
}

/// The module that has a parameter.
fn module(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(module, _)| module)
}

/// True for a map of an adapter.
fn is_of_adapter(module: &str) -> bool {
    matches!(module.rsplit('.').next(), Some("lora_A" | "lora_B"))
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
        [_, "norm" | "ln_f" | "final_layernorm" | "final_layer_norm" | "norm_f"]
    )
}

/// Modules that are wrapped one by one.
struct Blocks {
    /// Their paths, with `#` for the index in a list, if transformers says; otherwise members of long lists are.
    kept: Option<HashSet<&'static str>>,
    /// Number of members of each list.
    lists: HashMap<String, usize>,
}

impl Blocks {
    fn of(model: &Model, paths: &[String]) -> Self {
        Self::with(model.modules_kept_whole(), paths)
    }

    fn with(kept: Option<HashSet<&'static str>>, paths: &[String]) -> Self {
        let mut lists: HashMap<String, usize> = HashMap::new();
        for (list, index, _) in paths.iter().flat_map(|path| members(path)) {
            let count = lists.entry(list.to_owned()).or_default();
            *count = (*count).max(index + 1);
        }
        Self { kept, lists }
    }

    /// The innermost member of a list of at least [`LEAST_BLOCKS`].
    fn innermost<'a>(&self, path: &'a str) -> Option<&'a str> {
        let long = members(path).filter(|(list, _, _)| self.lists[*list] >= LEAST_BLOCKS);
        long.last().map(|(_, _, member)| member)
    }

    /// The innermost module that is kept whole and has a parameter; the outermost block if none are known.
    fn block<'a>(&self, path: &'a str) -> Option<&'a str> {
        if let Some(kept) = &self.kept {
            let ends = path.rmatch_indices('.').map(|(at, _)| &path[..at]);
            return ends.into_iter().find(|module| kept.contains(&*pattern(module)));
        }
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
        let blocks = Blocks::with(None, &paths);
        assert_eq!(blocks.block(&paths[2]), Some("model.layers.2"));
        assert_eq!(blocks.block(&paths[4]), None);
    }

    #[test]
    fn modules_kept_whole_are_the_innermost_that_transformers_names() {
        let kept = HashSet::from(["vision.layers.#.self_attn", "layers.#"]);
        let blocks = Blocks::with(Some(kept), &[]);
        assert_eq!(
            blocks.block("vision.layers.2.self_attn.q_proj.weight"),
            Some("vision.layers.2.self_attn")
        );
        assert_eq!(blocks.block("vision.layers.2.mlp.fc1.weight"), None);
        assert_eq!(blocks.block("layers.11.mlp.up_proj.weight"), Some("layers.11"));
    }

    #[test]
    fn parameters_of_modules_within_a_module_come_before_its_own() {
        let paths = [
            "layers.0.mixer.A_log",
            "layers.0.mixer.conv1d.weight",
            "layers.0.norm.weight",
            "bias",
        ]
        .map(String::from);
        assert_eq!(children_first(&[0, 1, 2, 3], &paths, 0), [1, 0, 2, 3]);
    }

    #[test]
    fn late_groups_are_wrapped_behind_the_blocks() {
        let mut groups = Groups::default();
        for (at, name) in [TAIL, "layers.0", "layers.1"].into_iter().enumerate() {
            groups.put(at, name, || (vec![name.to_owned()], true));
        }
        let plan = Plan {
            late: vec![1],
            ..groups.all()
        };
        let order: Vec<&[usize]> = plan.calls().map(|group| group.params.as_slice()).collect();
        assert_eq!(order, [&[1][..], &[2], &[0], &[]]);
    }

    #[test]
    fn the_last_norm_is_that_of_a_text_model() {
        assert!(is_last_norm("model.norm") && is_last_norm("transformer.ln_f"));
        assert!(!is_last_norm("model.language_model.norm") && !is_last_norm("model.layers.0.norm"));
    }
}
