//! What of a command never reaches the program.

use std::collections::BTreeMap;

use super::Finding;
use super::hypotheses::make;
use super::known::Known;
use crate::facts::Place;

/// Options that save memory, or change it, if they are lost.
const OF_MEMORY: [&str; 24] = [
    "gradient_checkpointing",
    "bf16",
    "fp16",
    "deepspeed",
    "per_device_train_batch_size",
    "batch_size",
    "max_length",
    "max_seq_length",
    "cutoff_len",
    "model_max_length",
    "train_type",
    "lora",
    "use_liger_kernel",
    "attn_impl",
    "flash_attn",
    "torch_dtype",
    "freeze",
    "pixels",
    "frames",
    "optim",
    "quant",
    "load_in",
    "offload",
    "fsdp",
];

/// Findings about the command of each text.
pub fn findings(known: &Known<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (text, digest) in known.texts.iter().enumerate() {
        let Some(command) = &digest.command else { continue };
        if let Some(lost) = &command.lost {
            let matters: Vec<&str> = lost
                .options
                .iter()
                .map(String::as_str)
                .filter(|option| {
                    OF_MEMORY
                        .iter()
                        .any(|name| option.replace('-', "_").to_ascii_lowercase().contains(name))
                })
                .collect();
            let name = if lost.is_comment {
                "cut-by-comment"
            } else {
                "cut-by-blank"
            };
            let shown: Vec<&str> = if matters.is_empty() {
                lost.options.iter().map(String::as_str).collect()
            } else {
                matters
            };
            let flags: Vec<&str> = shown
                .iter()
                .filter_map(|option| option.split([' ', '=']).next())
                .take(12)
                .collect();
            let values = BTreeMap::from([
                ("line".to_owned(), lost.line.to_string()),
                ("count".to_owned(), lost.options.len().to_string()),
                ("options".to_owned(), flags.join(", ")),
            ]);
            let line = lost.line;
            found.extend(make(
                name,
                &known.facts,
                values,
                vec![Place { text, line }],
                &known.texts,
            ));
        }
        if !command.unexported.is_empty() {
            let names: Vec<&str> = command.unexported.iter().map(|(name, _)| name.as_str()).collect();
            let places = command.unexported.iter().map(|(_, line)| Place { text, line: *line });
            let values = BTreeMap::from([("variables".to_owned(), names.join(", "))]);
            found.extend(make(
                "not-exported",
                &known.facts,
                values,
                places.collect(),
                &known.texts,
            ));
        }
    }
    found
}
