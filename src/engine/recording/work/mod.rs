//! Work of GPU and host for recorded operations, which determines the time of a step.

mod classes;

use std::collections::BTreeMap;

use super::kernels::{Call, short, title};
use super::layout::Layout;
use super::lines::{Op, Triton};
use super::tables::Tables;
use super::value::{TensorRef, Value};
use crate::names::Name;
use crate::tape::Tape;
use crate::tape::log::ScopeId;
use crate::tape::work::{Class, HostOp, Launch};

/// State of the host between operations.
#[derive(Default)]
pub(super) struct Host {
    node: Option<u64>,
    module: Option<u64>,
    /// Kernels known only by the memory that they read and write, with the number of their launches.
    pub unknown: BTreeMap<Name, u64>,
}

/// Operations that allocate memory and write nothing.
const MAKES: &[&str] = &["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"];

/// Maximum bytes that one operation is taken to read or write.
const MOST_MOVED: u64 = 1 << 60;

/// Returns the bytes of memory that a tensor covers; repeated elements count once.
fn bytes_of(layout: &Layout) -> u64 {
    let extents = layout.shape.iter().zip(layout.strides.iter());
    let elements: u64 = extents
        .filter(|(_, stride)| **stride != 0)
        .map(|(extent, _)| *extent)
        .product();
    elements.saturating_mul(layout.dtype.width())
}

/// Returns the bytes of all tensors on the GPU in some values.
fn bytes_in<'a>(tables: &Tables, values: impl Iterator<Item = &'a Value>) -> u64 {
    let mut bytes = 0u64;
    for value in values {
        value.tensors(&mut |tensor: &TensorRef| {
            let layout = tables
                .layouts
                .get(tensor.meta as usize)
                .filter(|_| tensor.storage.is_some());
            bytes = bytes.saturating_add(layout.map_or(0, bytes_of)).min(MOST_MOVED);
        });
    }
    bytes
}

impl Host {
    /// Records the host's work before an operation: entering a module, or a node of autograd.
    pub fn before(&mut self, tape: &Tape, line: &Op<'_>) {
        if line.autograd_thread == 1 {
            if line.node.is_some() && line.node != self.node {
                tape.host_op(HostOp::Node);
            }
            self.node = line.node;
        } else if line.module.is_some() && line.module != self.module {
            tape.host_op(HostOp::Module);
        }
        self.module = line.module;
    }

    /// Records the kernels of an operation, in place of those that its allocations since `mark` imply.
    pub fn ran(
        &mut self,
        mark: usize,
        call: &Call<'_>,
        (line, tables): (&Op<'_>, &Tables),
        (gradient, scope): (bool, ScopeId),
    ) {
        let name = short(call.name);
        if !line.new_storages.is_empty() && MAKES.contains(&name) {
            return call.tape.ran(mark, []);
        }
        let changes =
            !line.new_storages.is_empty() || name.ends_with('_') || writes_host(line) || name == "_local_scalar_dense";
        if !changes {
            call.tape.ran(mark, []);
            return call.tape.host_op(HostOp::View);
        }
        let forward = line.autograd_thread == 0 && line.module.is_some();
        if forward && tables.trains {
            call.tape.host_op(HostOp::Record);
        }
        let (class, dtype, extents, shared) = classes::of(name, call, line, tables);
        if !call.name.starts_with("aten.") {
            *self.unknown.entry(call.name).or_default() += 1;
        }
        let own = name.ends_with('_');
        let written = match own {
            true => bytes_in(tables, line.args.iter().take(1)),
            false => bytes_in(tables, line.outputs.iter()),
        };
        let launch = Launch {
            name: known_as(name, call.name),
            class,
            dtype,
            gradient,
            scope,
            read: bytes_in(tables, line.args.iter().chain(line.kwargs.values())),
            written,
            extents,
            shared,
        };
        call.tape.ran(mark, [launch]);
        if class == Class::HostCopy && line.outputs.iter().any(|value| !on_gpu(value)) {
            call.tape.host_op(HostOp::Wait);
        }
    }

    /// Records a Triton kernel, known only by the memory that it reads and writes.
    pub fn triton(&mut self, tape: &Tape, name: Name, line: &Triton<'_>, tables: &Tables) {
        *self.unknown.entry(name).or_default() += 1;
        let bytes = bytes_in(tables, line.args.iter().chain(line.kwargs.values()));
        let mut dtype = None;
        for value in &line.args {
            value.tensors(&mut |tensor: &TensorRef| {
                dtype = dtype.or_else(|| tables.layouts.get(tensor.meta as usize).map(|layout| layout.dtype));
            });
        }
        tape.launch(Launch {
            name,
            class: Class::Strided,
            dtype: dtype.unwrap_or(crate::dtype::DType::F32),
            gradient: line.autograd_thread == 1,
            scope: tables.scope(line.module).unwrap_or_default(),
            read: bytes / 2,
            written: bytes - bytes / 2,
            extents: [0; 4],
            shared: 1,
        });
    }
}

/// Returns true if a value is a tensor on the GPU, or no tensor.
fn on_gpu(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.storage.is_some(),
        _ => true,
    }
}

/// Returns true if a result lies on the host although an argument lies on the GPU.
fn writes_host(line: &Op<'_>) -> bool {
    let mut any = false;
    line.args
        .iter()
        .for_each(|value| value.tensors(&mut |tensor: &TensorRef| any |= tensor.storage.is_some()));
    any && line.outputs.iter().any(|value| !on_gpu(value))
}

/// Returns the name that the host's timings use for an operation.
fn known_as(name: Name, whole: Name) -> Name {
    match name {
        "_to_copy" => "to dtype",
        "clone" | "copy_" => "clone",
        "native_dropout" => "dropout",
        _ => title(whole),
    }
}
