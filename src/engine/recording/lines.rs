//! Lines of a recording, parsed from JSON. `docs/recording.md` says what each key means.

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
    StandIn(StandIn),
    Missing(Missing),
    Batches(Batches),
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
            "stand_in" => Self::StandIn(json(line)?),
            "missing" => Self::Missing(json(line)?),
            "batches" => Self::Batches(json(line)?),
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
            Self::SourceLine(line) => Line::SourceLine(line),
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
            Self::StandIn(stand_in) => Line::StandIn(stand_in),
            Self::Missing(missing) => Line::Missing(missing),
            Self::Batches(batches) => Line::Batches(batches),
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
    #[serde(rename = "s")]
    pub storage: u64,
    #[serde(rename = "m", borrow)]
    pub meta: Reference<'a>,
    pub trainable: bool,
    #[serde(default)]
    pub buffer: bool,
    /// Elements of the whole parameter, of which this rank holds a part.
    #[serde(default)]
    pub elements: Option<u64>,
}

impl Param<'_> {
    fn into_owned(self) -> Param<'static> {
        Param {
            name: owned(self.name),
            meta: self.meta.into_owned(),
            id: self.id,
            module: self.module,
            storage: self.storage,
            trainable: self.trainable,
            elements: self.elements,
            buffer: self.buffer,
        }
    }
}

/// Line `op`.
#[derive(Debug, PartialEq, Default, Deserialize)]
pub(super) struct Op<'a> {
    #[serde(rename = "f", borrow)]
    pub function: Reference<'a>,
    #[serde(rename = "a", default)]
    pub args: Vec<Value>,
    #[serde(rename = "k", default, borrow)]
    pub kwargs: Keywords<'a>,
    #[serde(rename = "o", default)]
    pub outputs: Vec<Value>,
    /// Id and bytes of each storage that the operation allocates.
    #[serde(rename = "n", default)]
    pub new_storages: Vec<(u64, Count)>,
    /// 1 on autograd's thread, 0 on the script's.
    #[serde(rename = "b", default)]
    pub autograd_thread: u8,
    /// Autograd node.
    #[serde(rename = "v")]
    pub node: Option<u64>,
    #[serde(rename = "mod")]
    pub module: Option<u64>,
    #[serde(rename = "l")]
    pub source_line: Option<u64>,
    #[serde(rename = "st", default)]
    pub stream: u32,
}

impl Op<'_> {
    fn into_owned(self) -> Op<'static> {
        Op {
            function: self.function.into_owned(),
            kwargs: self.kwargs.into_owned(),
            args: self.args,
            outputs: self.outputs,
            new_storages: self.new_storages,
            autograd_thread: self.autograd_thread,
            node: self.node,
            module: self.module,
            source_line: self.source_line,
            stream: self.stream,
        }
    }

    /// Returns true if an argument varies with the sizes.
    pub fn varies(&self) -> bool {
        self.args.iter().chain(self.kwargs.values()).any(Value::varies)
    }

    /// Returns the operation with its varying arguments replaced by `numbers`.
    pub fn at(&self, numbers: &[i64]) -> Result<Self, Fault> {
        let value = |value: &Value| value.at(numbers);
        Ok(Self {
            function: self.function.clone(),
            args: self.args.iter().map(value).collect::<Result<_, Fault>>()?,
            kwargs: self.kwargs.at(numbers)?,
            outputs: self.outputs.clone(),
            new_storages: self.new_storages.clone(),
            ..*self
        })
    }
}

/// Line `triton`: a kernel that was launched but not run.
#[derive(Deserialize)]
pub(super) struct Triton<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(rename = "a", default)]
    pub args: Vec<Value>,
    #[serde(rename = "k", default, borrow)]
    pub kwargs: Keywords<'a>,
    /// 1 on autograd's thread, 0 on the script's.
    #[serde(rename = "b", default)]
    pub autograd_thread: u8,
    #[serde(rename = "mod")]
    pub module: Option<u64>,
}

impl Triton<'_> {
    fn into_owned(self) -> Triton<'static> {
        Triton {
            name: owned(self.name),
            kwargs: self.kwargs.into_owned(),
            args: self.args,
            autograd_thread: self.autograd_thread,
            module: self.module,
        }
    }
}

/// Line `free`.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Free {
    #[serde(rename = "s")]
    pub storages: Vec<u64>,
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
    #[serde(rename = "s")]
    pub storage: u64,
    #[serde(borrow)]
    pub is: Cow<'a, str>,
    /// Autograd node.
    #[serde(rename = "v")]
    pub node: Option<u64>,
    #[serde(rename = "p")]
    pub param: Option<u64>,
    #[serde(default, borrow)]
    pub name: Option<Cow<'a, str>>,
}

impl Why<'_> {
    fn into_owned(self) -> Why<'static> {
        Why {
            is: owned(self.is),
            name: self.name.map(owned),
            storage: self.storage,
            node: self.node,
            param: self.param,
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

/// Line `stand_in`: what the command asked the rest of the world for, and what a dry run answered.
#[derive(Deserialize)]
pub(super) struct StandIn {
    pub what: String,
    #[serde(default)]
    pub how: String,
}

/// Line `missing`: packages that libraries looked for, on which they choose how to compute, and did not find.
#[derive(Deserialize)]
pub(super) struct Missing {
    #[serde(default)]
    pub packages: Vec<String>,
}

/// Line `batches`: which steps of the run the recorded ones are.
#[derive(Deserialize)]
pub(super) struct Batches {
    pub walked: u64,
    #[serde(default)]
    pub total: Option<u64>,
    #[serde(default)]
    pub each: u64,
    pub steps: Vec<BatchStep>,
}

/// A recorded step's batch, in a line `batches`.
#[derive(Deserialize)]
pub(super) struct BatchStep {
    pub step: u64,
    #[serde(default)]
    pub why: Vec<String>,
    #[serde(default)]
    pub positions: u64,
    #[serde(default)]
    pub pixels: u64,
    #[serde(default)]
    pub labels: u64,
}
