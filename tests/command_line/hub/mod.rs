//! Tests of models that are named as people name them: ids, addresses, folders, copies; against a stand-in of a hub.

mod bad_answers;
mod draw;
mod drawn;
mod names;
mod secure;
mod stand_in;
mod stored;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use stand_in::StandIn;

use crate::program::{Ran, finish, vramscope};

impl StandIn {
    /// A command for the binary that asks this hub, with a home of its own.
    fn command(&self, home: &Path) -> Command {
        let mut command = vramscope();
        command
            .env_remove("HF_HUB_OFFLINE")
            .env("HF_ENDPOINT", self.address())
            .env("HF_HUB_DOWNLOAD_TIMEOUT", "2")
            .env("HOME", home);
        command
    }

    /// Runs the binary on this hub.
    fn run(&self, home: &Path, args: &[&str]) -> Ran {
        finish(self.command(home).args(args), b"")
    }
}

/// A configuration of a small Llama that no table knows.
fn small() -> Value {
    json!({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
        "tie_word_embeddings": false})
}

/// Parameters of [`small`]: embeddings and head, then of each layer q and o, k and v, the MLP and two norms, and the last norm.
const SMALL: u64 = 2 * 1000 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64) + 64;

/// Parameters in an answer of `estimate --format json`.
fn params(ran: &Ran) -> u64 {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout));
    answer["params"].as_u64().unwrap_or_else(|| panic!("{}", ran.stdout))
}
