//! The lines of a recording, as JSON.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::value::Value;
use crate::dtype::DType;

/// What every line has: its type.
#[derive(Deserialize)]
pub(super) struct Tag<'a> {
    #[serde(borrow)]
    pub t: Cow<'a, str>,
}

/// `fn` and `node`.
#[derive(Deserialize)]
pub(super) struct Named<'a> {
    pub id: u64,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
}

/// `meta`.
#[derive(Deserialize)]
pub(super) struct Meta {
    pub id: u64,
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub strides: Option<Vec<u64>>,
}

/// `module`.
#[derive(Deserialize)]
pub(super) struct Module<'a> {
    pub id: u64,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub class: Cow<'a, str>,
    pub parent: Option<u64>,
}

/// `line`.
#[derive(Deserialize)]
pub(super) struct Place {
    pub id: u64,
}

/// `param`.
#[derive(Deserialize)]
pub(super) struct Param<'a> {
    pub id: u64,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    pub module: Option<u64>,
    pub s: u64,
    pub m: u64,
    pub trainable: bool,
    #[serde(default)]
    pub buffer: bool,
}

/// `op`.
#[derive(Deserialize)]
pub(super) struct Op<'a> {
    pub f: u64,
    #[serde(default)]
    pub a: Vec<Value>,
    #[serde(default, borrow)]
    pub k: HashMap<Cow<'a, str>, Value>,
    #[serde(default)]
    pub o: Vec<Value>,
    #[serde(default)]
    pub n: Vec<(u64, u64)>,
    #[serde(default)]
    pub b: u8,
    pub v: Option<u64>,
    #[serde(rename = "mod")]
    pub module: Option<u64>,
    pub l: Option<u64>,
    #[serde(default)]
    pub st: u32,
}

/// `free`.
#[derive(Deserialize)]
pub(super) struct Free {
    pub s: Vec<u64>,
}

/// `mark`.
#[derive(Deserialize)]
pub(super) struct Mark<'a> {
    #[serde(borrow)]
    pub at: Cow<'a, str>,
}

/// `ask`.
#[derive(Deserialize)]
pub(super) struct Ask<'a> {
    #[serde(borrow)]
    pub what: Cow<'a, str>,
}

/// `setting`.
#[derive(Deserialize)]
pub(super) struct Setting {
    pub alloc_conf: Option<String>,
}

/// `why`.
#[derive(Deserialize)]
pub(super) struct Why<'a> {
    pub s: u64,
    #[serde(borrow)]
    pub is: Cow<'a, str>,
    pub v: Option<u64>,
    pub p: Option<u64>,
    #[serde(default, borrow)]
    pub name: Option<Cow<'a, str>>,
}

/// `assumed`.
#[derive(Deserialize)]
pub(super) struct Assumed {
    pub what: String,
    #[serde(default)]
    pub how: String,
    #[serde(default)]
    pub count: u64,
}
