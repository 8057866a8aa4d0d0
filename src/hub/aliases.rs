//! Names that training tools give to models, from the tools' own tables.
//!
//! The tables are written by `aliases.py`, which reads the tools' sources.

/// A tool with names of its own for models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// `model_type` of ms-swift 2, which named a checkpoint; since version 3 it names an architecture.
    MsSwift2,
    /// Names of LLaMA-Factory's menu.
    LlamaFactory,
    /// Ids at ModelScope that differ from those at the Hugging Face Hub.
    ModelScope,
}

impl Tool {
    const ALL: [(Self, &'static str); 3] = [
        (Self::MsSwift2, include_str!("aliases/ms_swift_2.tsv")),
        (Self::LlamaFactory, include_str!("aliases/llama_factory.tsv")),
        (Self::ModelScope, include_str!("aliases/modelscope.tsv")),
    ];

    /// Whose table it is.
    pub fn name(self) -> &'static str {
        match self {
            Self::MsSwift2 => "ms-swift 2",
            Self::LlamaFactory => "LLaMA-Factory",
            Self::ModelScope => "ModelScope",
        }
    }
}

/// Rows of a table: a name and an id at the Hugging Face Hub.
fn rows(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table.lines().filter_map(|line| line.split_once('\t'))
}

/// Finds the id that a tool's table gives to a name.
pub(crate) fn find(name: &str) -> Option<(Tool, &'static str)> {
    Tool::ALL.iter().find_map(|(tool, table)| {
        let (_, id) = rows(table).find(|(alias, _)| *alias == name)?;
        // An id with its owner is written differently at ModelScope in nothing but the owner's capitals, sometimes.
        (id != name).then_some((*tool, id))
    })
}

/// Every id that a table names, which are ids that exist.
pub(crate) fn ids() -> impl Iterator<Item = &'static str> {
    Tool::ALL.iter().flat_map(|(_, table)| rows(table).map(|(_, id)| id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_have_an_id() {
        let cases = [
            ("qwen-7b-chat", Tool::MsSwift2, "Qwen/Qwen-7B-Chat"),
            ("yi-6b-chat", Tool::MsSwift2, "01-ai/Yi-6B-Chat"),
            ("qwen2-vl-7b-instruct", Tool::MsSwift2, "Qwen/Qwen2-VL-7B-Instruct"),
            ("Qwen2.5-7B-Instruct", Tool::LlamaFactory, "Qwen/Qwen2.5-7B-Instruct"),
            (
                "LLM-Research/Meta-Llama-3-8B-Instruct",
                Tool::ModelScope,
                "meta-llama/Meta-Llama-3-8B-Instruct",
            ),
        ];
        for (name, tool, id) in cases {
            assert_eq!(find(name), Some((tool, id)));
        }
        assert_eq!(find("qwen2_5_vl"), None, "it names an architecture");
        for (_, table) in Tool::ALL {
            assert_eq!(table.lines().count(), rows(table).count());
        }
    }
}
