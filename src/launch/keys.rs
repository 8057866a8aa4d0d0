//! Meaning of each tool's keys for memory, from the tables in `keys/`.

use std::collections::BTreeMap;

use crate::tool::Tool;

/// Meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The setup takes it, under this name of [`crate::draft`]; with the tool's default, if it has one.
    Simulated(&'static str, &'static str),
    /// It changes nothing in the memory of a step.
    NoEffect(NoEffect),
    /// It changes memory and is not simulated, unless it is off.
    NotSimulated(NotSimulated),
}

macro_rules! reasons {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal, $text:literal;)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = $text] $variant,)+
        }

        impl $name {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Word of the tables.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The reason in English.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

reasons! {
    /// Why a key has no effect on the memory of a training step.
    NoEffect {
        Numbers = "numbers", "changes numbers, not sizes";
        Schedule = "schedule", "decides how long training takes and how the learning rate goes";
        Data = "data", "chooses or prepares data; sizes come from the lengths that you give";
        Host = "host", "takes memory of the host, not of the GPU";
        Evaluation = "evaluation", "applies to evaluation, not to a training step";
        Saving = "saving", "applies when a checkpoint is written or read";
        Hub = "hub", "says where files come from or go to";
        Logging = "logging", "applies to logs";
        Distributed = "distributed", "says how processes find each other";
        Stage = "stage", "chooses what the tool does";
        Files = "files", "names another file, which is read if it is given too";
        Derived = "derived", "follows from other keys";
        Peak = "peak", "gives back cached memory between steps; the peak within a step stays";
    }
}

reasons! {
    /// Why a key that changes memory is not simulated.
    NotSimulated {
        Lengths = "lengths", "changes the lengths of batches; give the lengths that result with --lengths and --packing";
        Labels = "labels", "changes how many tokens the loss counts; give them with --completion";
        Sharding = "sharding", "shards the model between GPUs in a way that is not simulated";
        Zero = "zero", "is a part of DeepSpeed's ZeRO that is not simulated";
        Offload = "offload", "moves tensors to the host during the step";
        Compile = "compile", "torch.compile fuses operations, and its memory is not known";
        Kernels = "kernels", "replaces the model's operations by others";
        Loss = "loss", "changes the computation of the loss";
        Optimizer = "optimizer", "uses an optimizer that is not simulated";
        Adapters = "adapters", "trains other parameters than those that are simulated";
        Quantization = "quantization", "quantizes the weights in a way that is not simulated";
        Checkpointing = "checkpointing", "checkpoints activations in a way that is not simulated";
        Precision = "precision", "mixes types in a way that is not simulated";
        Device = "device", "runs elsewhere than on a CUDA GPU";
    }
}

/// Text of a tool's table.
const fn table(tool: Tool) -> &'static str {
    match tool {
        Tool::Transformers => include_str!("keys/transformers.tsv"),
        Tool::TrlSft => include_str!("keys/trl_sft.tsv"),
        Tool::TrlDpo => include_str!("keys/trl_dpo.tsv"),
        Tool::LlamaFactory => include_str!("keys/llama_factory.tsv"),
        Tool::MsSwift => include_str!("keys/ms_swift.tsv"),
        Tool::Axolotl => include_str!("keys/axolotl.tsv"),
        Tool::DeepSpeed => include_str!("keys/deepspeed.tsv"),
        Tool::Accelerate => include_str!("keys/accelerate.tsv"),
    }
}

/// Keys of a tool, those that it takes over from another included.
pub(crate) fn keys(tool: Tool) -> BTreeMap<&'static str, Meaning> {
    let mut out = BTreeMap::new();
    for line in table(tool)
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let mut cells = line.split('\t');
        let (Some(key), Some(what)) = (cells.next(), cells.next()) else {
            continue;
        };
        if key == "include" {
            let whole = Tool::ALL.iter().find(|tool| tool.word() == what);
            out.extend(whole.map(|tool| keys(*tool)).unwrap_or_default());
        } else if let Some(meaning) = meaning(what, cells.next().unwrap_or_default()) {
            out.insert(key, meaning);
        }
    }
    out
}

fn meaning(what: &'static str, default: &'static str) -> Option<Meaning> {
    let (kind, word) = what.split_at_checked(1)?;
    match kind {
        "=" => Some(Meaning::Simulated(word, default)),
        "-" => NoEffect::ALL
            .iter()
            .find(|reason| reason.word() == word)
            .map(|reason| Meaning::NoEffect(*reason)),
        "!" => {
            let found = NotSimulated::ALL.iter().find(|reason| reason.word() == word);
            found.map(|reason| Meaning::NotSimulated(*reason))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_tables_is_read() {
        for tool in Tool::ALL {
            for line in table(*tool)
                .lines()
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
            {
                let cells: Vec<&str> = line.split('\t').collect();
                let is_whole = cells.len() == 3 && (cells[0] == "include" || keys(*tool).contains_key(cells[0]));
                assert!(is_whole, "{tool:?}: {line}");
            }
            let rows = table(*tool)
                .lines()
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            let mut seen = std::collections::BTreeSet::new();
            for name in rows.filter_map(|line| line.split('\t').next()) {
                assert!(seen.insert(name), "{tool:?} lists {name} twice");
            }
        }
    }

    #[test]
    fn simulated_keys_are_known_to_the_draft() {
        for tool in Tool::ALL {
            for (key, meaning) in keys(*tool) {
                if let Meaning::Simulated(knob, default) = meaning {
                    let mut draft = crate::draft::Draft::default();
                    let value = match default {
                        "" => serde_json::Value::Null,
                        text => serde_json::Value::String(text.to_owned()),
                    };
                    let set = draft.set(knob, &value);
                    assert!(set.is_ok(), "{tool:?} {key}: {set:?}");
                }
            }
        }
    }
}
