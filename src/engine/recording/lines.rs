//! Lines of a recording, parsed from JSON.

use std::borrow::Cow;

use serde::Deserialize;

use super::fault::Fault;
use super::keywords::Keywords;
use super::number::{Count, Reference};
use super::scan;
use super::value::Value;
use crate::dtype::DType;

/// Type of a line, which every line has.
#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
}

/// Line of a recording.
pub(super) enum Line<'a> {
    Op(Box<Op<'a>>),
    Triton(Box<Triton<'a>>),
    Free(Free),
    Why(Why<'a>),
    Meta(Meta),
    Function(Named<'a>),
    Node(Named<'a>),
    SourceLine(SourceLine),
    Module(Module<'a>),
    Param(Param<'a>),
    Mark(Mark<'a>),
    Ask(Ask<'a>),
    ResetPeak,
    EmptyCache,
    ClearWorkspaces,
    Setting(Setting),
    Assumed(Assumed),
    /// Line `structure`, which only recordings of all sizes have.
    Structure,
    Header,
    End,
    /// Line of an unknown type from a later recorder, or one that changes no memory.
    Other,
}

fn json<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, Fault> {
    serde_json::from_str(line).map_err(|error| Fault::Json(error.to_string()))
}

impl<'a> Line<'a> {
    /// Parses a line.
    pub fn read(line: &'a str) -> Result<Self, Fault> {
        if let Some(common) = scan::line(line) {
            return Ok(common);
        }
        Ok(match &*json::<Tag<'_>>(line)?.t {
            "op" => Self::Op(json(line)?),
            "triton" => Self::Triton(json(line)?),
            "free" => Self::Free(json(line)?),
            "why" => Self::Why(json(line)?),
            "meta" => Self::Meta(json(line)?),
            "fn" => Self::Function(json(line)?),
            "node" => Self::Node(json(line)?),
            "line" => Self::SourceLine(json(line)?),
            "module" => Self::Module(json(line)?),
            "param" => Self::Param(json(line)?),
            "mark" => Self::Mark(json(line)?),
            "ask" => Self::Ask(json(line)?),
            "reset_peak" => Self::ResetPeak,
            "empty_cache" => Self::EmptyCache,
            "clear_cublas_workspaces" => Self::ClearWorkspaces,
            "setting" => Self::Setting(json(line)?),
            "assumed" => Self::Assumed(json(line)?),
            "structure" => Self::Structure,
            "header" => Self::Header,
            "end" => Self::End,
            _ => Self::Other,
        })
    }

    /// Copies borrowed text, so that the line outlives its source.
    pub fn into_owned(self) -> Line<'static> {
        match self {
            Self::Op(op) => Line::Op(Box::new(op.into_owned())),
            Self::Triton(triton) => Line::Triton(Box::new(triton.into_owned())),
            Self::Free(free) => Line::Free(free),
            Self::Why(why) => Line::Why(why.into_owned()),
            Self::Meta(meta) => Line::Meta(meta),
            Self::Function(named) => Line::Function(named.into_owned()),
            Self::Node(named) => Line::Node(named.into_owned()),
            Self::SourceLine(place) => Line::SourceLine(place),
            Self::Module(module) => Line::Module(module.into_owned()),
            Self::Param(param) => Line::Param(param.into_owned()),
            Self::Mark(mark) => Line::Mark(Mark {
                at: owned(mark.at),
                name: mark.name.map(owned),
            }),
            Self::Ask(ask) => Line::Ask(Ask { what: owned(ask.what) }),
            Self::ResetPeak => Line::ResetPeak,
            Self::EmptyCache => Line::EmptyCache,
            Self::ClearWorkspaces => Line::ClearWorkspaces,
            Self::Setting(setting) => Line::Setting(setting),
            Self::Assumed(assumed) => Line::Assumed(assumed),
            Self::Structure => Line::Structure,
            Self::Header => Line::Header,
            Self::End => Line::End,
            Self::Other => Line::Other,
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// Lines `fn` and `node`.
#[derive(Deserialize)]
pub(super) struct Named<'a> {
    pub id: u64,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
}

impl Named<'_> {
    fn into_owned(self) -> Named<'static> {
        Named {
            id: self.id,
            name: owned(self.name),
        }
    }
}

/// Line `meta`.
#[derive(Deserialize)]
pub(super) struct Meta {
    pub id: u64,
    pub dtype: DType,
    pub shape: Vec<u64>,
    pub strides: Option<Vec<u64>>,
}

/// Line `module`.
#[derive(Deserialize)]
pub(super) struct Module<'a> {
    pub id: u64,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub class: Cow<'a, str>,
    pub parent: Option<u64>,
}

impl Module<'_> {
    fn into_owned(self) -> Module<'static> {
        Module {
            id: self.id,
            name: owned(self.name),
            class: owned(self.class),
            parent: self.parent,
        }
    }
}

/// Line `line`.
#[derive(Deserialize)]
pub(super) struct SourceLine {
    pub id: u64,
}

/// Line `param`.
#[derive(Deserialize)]
pub(super) struct Param<'a> {
    pub id: u64,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    pub module: Option<u64>,
    pub s: u64,
    #[serde(borrow)]
    pub m: Reference<'a>,
    pub trainable: bool,
    #[serde(default)]
    pub buffer: bool,
}

impl Param<'_> {
    fn into_owned(self) -> Param<'static> {
        Param {
            name: owned(self.name),
            m: self.m.into_owned(),
            id: self.id,
            module: self.module,
            s: self.s,
            trainable: self.trainable,
            buffer: self.buffer,
        }
    }
}

/// Line `op`.
#[derive(Debug, PartialEq, Default, Deserialize)]
pub(super) struct Op<'a> {
    #[serde(borrow)]
    pub f: Reference<'a>,
    #[serde(default)]
    pub a: Vec<Value>,
    #[serde(default, borrow)]
    pub k: Keywords<'a>,
    #[serde(default)]
    pub o: Vec<Value>,
    #[serde(default)]
    pub n: Vec<(u64, Count)>,
    #[serde(default)]
    pub b: u8,
    pub v: Option<u64>,
    #[serde(rename = "mod")]
    pub module: Option<u64>,
    pub l: Option<u64>,
    #[serde(default)]
    pub st: u32,
}

impl Op<'_> {
    fn into_owned(self) -> Op<'static> {
        Op {
            f: self.f.into_owned(),
            k: self.k.into_owned(),
            a: self.a,
            o: self.o,
            n: self.n,
            b: self.b,
            v: self.v,
            module: self.module,
            l: self.l,
            st: self.st,
        }
    }

    /// Returns true if an argument varies with the sizes.
    pub fn varies(&self) -> bool {
        self.a.iter().chain(self.k.values()).any(Value::varies)
    }

    /// Returns the operation with its varying arguments replaced by `numbers`.
    pub fn at(&self, numbers: &[i64]) -> Result<Self, Fault> {
        let value = |value: &Value| value.at(numbers);
        Ok(Self {
            f: self.f.clone(),
            a: self.a.iter().map(value).collect::<Result<_, Fault>>()?,
            k: self.k.at(numbers)?,
            o: self.o.clone(),
            n: self.n.clone(),
            ..*self
        })
    }
}

/// Line `triton`: a kernel that was launched but not run.
#[derive(Deserialize)]
pub(super) struct Triton<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(default)]
    pub a: Vec<Value>,
    #[serde(default, borrow)]
    pub k: Keywords<'a>,
    #[serde(default)]
    pub b: u8,
    #[serde(rename = "mod")]
    pub module: Option<u64>,
}

impl Triton<'_> {
    fn into_owned(self) -> Triton<'static> {
        Triton {
            name: owned(self.name),
            k: self.k.into_owned(),
            a: self.a,
            b: self.b,
            module: self.module,
        }
    }
}

/// Line `free`.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Free {
    pub s: Vec<u64>,
}

/// Line `mark`.
#[derive(Deserialize)]
pub(super) struct Mark<'a> {
    #[serde(borrow)]
    pub at: Cow<'a, str>,
    /// Class of an optimizer.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
}

/// Line `ask`.
#[derive(Deserialize)]
pub(super) struct Ask<'a> {
    #[serde(borrow)]
    pub what: Cow<'a, str>,
}

/// Line `setting`.
#[derive(Deserialize)]
pub(super) struct Setting {
    pub alloc_conf: Option<String>,
}

/// Line `why`.
#[derive(Debug, PartialEq, Default, Deserialize)]
pub(super) struct Why<'a> {
    pub s: u64,
    #[serde(borrow)]
    pub is: Cow<'a, str>,
    pub v: Option<u64>,
    pub p: Option<u64>,
    #[serde(default, borrow)]
    pub name: Option<Cow<'a, str>>,
}

impl Why<'_> {
    fn into_owned(self) -> Why<'static> {
        Why {
            is: owned(self.is),
            name: self.name.map(owned),
            s: self.s,
            v: self.v,
            p: self.p,
        }
    }
}

/// Line `assumed`.
#[derive(Deserialize)]
pub(super) struct Assumed {
    pub what: String,
    #[serde(default)]
    pub how: String,
    #[serde(default)]
    pub count: u64,
}
