//! JSON document of `vramscope doctor`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of `vramscope doctor`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorDocument {
    /// This program.
    pub vramscope: Program,
    /// The system that it runs on.
    pub system: System,
    /// The card that can be measured; none if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
    /// Libraries of the card's maker, each found or not.
    pub libraries: Vec<Library>,
    /// The Python that training would run in; none if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<Python>,
    /// Access to the model hub.
    pub hub: Hub,
    /// Missing parts, each with what cannot be done without it and the remedy.
    pub missing: Vec<Missing>,
}

/// This program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Program {
    /// Version of the command line.
    pub version: String,
    /// Parts that it was built with: `mcp`, `portable`, `server`.
    pub features: Vec<String>,
    /// True if it was built without optimization.
    pub is_debug: bool,
    /// Path of the executable; none where the system does not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The system.
#[derive(Debug, Serialize, JsonSchema)]
pub struct System {
    /// Such as `linux`, `macos`, `windows`.
    pub os: String,
    /// Such as `x86_64`, `aarch64`.
    pub arch: String,
    /// Processors that this program may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<usize>,
}

/// A card.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Card {
    /// As its driver names it.
    pub name: String,
    /// The card of `vramscope gpus` that it is; none if it is not known there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_as: Option<String>,
    /// Bytes of its memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// CUDA's compute capability, such as `9.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// Version of the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Cards of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// A library that was looked for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Library {
    /// Its name.
    pub name: String,
    /// Use that VRAMscope makes of it.
    pub purpose: String,
    /// True if it can be used.
    pub is_found: bool,
    /// Version and origin, or why it cannot be used.
    pub state: String,
}

/// A Python.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Python {
    /// The interpreter.
    pub path: String,
    /// Versions that the interpreter reports.
    #[serde(flatten)]
    pub surroundings: Surroundings,
}

/// Versions that an interpreter reports (printed by `src/recorder/vramscope/surroundings.py`, so that both must change together).
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Surroundings {
    /// Its version.
    pub version: String,
    /// Such as `CPython`.
    pub implementation: String,
    /// Versions of libraries that train, and of those that change what a step takes.
    pub libraries: BTreeMap<String, String>,
    /// PyTorch; none if it is not installed.
    pub pytorch: Option<PyTorch>,
    /// Version of the recorder.
    pub recorder: String,
    /// Why the recorder cannot run in it.
    pub recorder_fails: Option<String>,
}

/// PyTorch's build, and the cards that it sees.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PyTorch {
    /// The CUDA that it was built for.
    #[serde(default)]
    pub cuda: Option<String>,
    /// True if it can use a card.
    #[serde(default)]
    pub sees_cuda: bool,
    /// Names of the cards that it sees.
    #[serde(default)]
    pub cards: Vec<String>,
    /// Why it cannot be used.
    #[serde(default)]
    pub error: Option<String>,
}

/// Access to the model hub.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Hub {
    /// True if the environment forbids the network (`HF_HUB_OFFLINE`).
    pub is_offline: bool,
    /// True if the environment names a mirror (`HF_ENDPOINT`).
    pub has_mirror: bool,
    /// True if a token is set or stored, which is never shown.
    pub has_token: bool,
    /// Models whose config.json is kept.
    pub cached_models: usize,
}

/// A missing part.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Missing {
    /// Name of the part.
    pub what: String,
    /// Commands or measurements that do not work without it.
    pub stops: String,
    /// Remedy, such as a command to run.
    pub remedy: String,
}
