//! Tables of a recording's declarations, by number.

use super::fault::Fault;
use super::layout::Layout;
use super::limits::{MOST_DECLARED, MOST_ELEMENTS, MOST_NAMED};
use super::lines;
use crate::names::{self, Name};
use crate::tape::Tape;
use crate::tape::log::ScopeId;

/// Declarations, by number.
#[derive(Default)]
pub(super) struct Tables {
    pub operations: Vec<Name>,
    pub layouts: Vec<Layout>,
    pub modules: Vec<Module>,
    pub nodes: Vec<Name>,
    pub params: Vec<Param>,
    /// Values of the polynomials, if the recording covers all sizes.
    pub numbers: Vec<i64>,
    /// True if a parameter is trained.
    pub trains: bool,
    source_lines: u64,
    /// Bytes of all names so far.
    named: usize,
}

/// Module of the model.
pub(super) struct Module {
    /// Path from the root, such as `model.layers.0.self_attn`.
    pub path: Box<str>,
    /// Class of the module.
    pub class: Box<str>,
    /// Scope of the module on the tape.
    pub scope: ScopeId,
}

/// Parameter or buffer of a module.
pub(super) struct Param {
    /// Name without the module's path.
    pub name: Name,
    /// Scope of the module.
    pub scope: ScopeId,
    /// Number of the storage.
    pub storage: u64,
    /// Number of elements.
    pub elements: u64,
    pub trainable: bool,
    pub buffer: bool,
}

/// Returns a declaration, or a fault if the id is undeclared.
pub(super) fn declared<'a, T>(all: &'a [T], what: &'static str, id: u64) -> Result<&'a T, Fault> {
    let at = usize::try_from(id).ok();
    at.and_then(|at| all.get(at)).ok_or(Fault::Undeclared(what, id))
}

/// Checks that a declaration has the next number.
fn next(what: &'static str, id: u64, count: usize) -> Result<(), Fault> {
    match count as u64 {
        next if next != id => Err(Fault::OutOfOrder(what, id, next)),
        _ if count >= MOST_DECLARED => Err(Fault::TooMuch("declarations")),
        _ => Ok(()),
    }
}

impl Tables {
    /// Interns a name.
    pub fn keep(&mut self, text: &str) -> Result<Name, Fault> {
        self.count(text.len())?;
        Ok(names::keep(text))
    }

    /// Counts the bytes of a name towards the limit.
    fn count(&mut self, bytes: usize) -> Result<(), Fault> {
        self.named += bytes + size_of::<Name>();
        if self.named > MOST_NAMED {
            return Err(Fault::TooMuch("names"));
        }
        Ok(())
    }

    /// Adds a line `fn`.
    pub fn operation(&mut self, line: &lines::Named<'_>) -> Result<(), Fault> {
        next("function", line.id, self.operations.len())?;
        let name = self.keep(&line.name)?;
        self.operations.push(name);
        Ok(())
    }

    /// Adds a line `node`.
    pub fn node(&mut self, line: &lines::Named<'_>) -> Result<(), Fault> {
        next("node", line.id, self.nodes.len())?;
        let name = self.keep(&line.name)?;
        self.nodes.push(name);
        Ok(())
    }

    /// Adds a line `meta`.
    pub fn meta(&mut self, line: &lines::Meta) -> Result<(), Fault> {
        next("meta", line.id, self.layouts.len())?;
        let layout = Layout::new(line.dtype, &line.shape, line.strides.as_deref())?;
        self.layouts.push(layout);
        Ok(())
    }

    /// Adds a line `line`.
    pub fn source_line(&mut self, line: &lines::SourceLine) -> Result<(), Fault> {
        next(
            "line",
            line.id,
            usize::try_from(self.source_lines).unwrap_or(usize::MAX),
        )?;
        self.source_lines += 1;
        Ok(())
    }

    /// Checks that a line of Python was declared.
    pub fn check_source_line(&self, id: Option<u64>) -> Result<(), Fault> {
        match id.filter(|&id| id >= self.source_lines) {
            Some(id) => Err(Fault::Undeclared("line", id)),
            None => Ok(()),
        }
    }

    /// Adds a line `module`.
    pub fn module(&mut self, tape: &Tape, line: &lines::Module<'_>) -> Result<(), Fault> {
        next("module", line.id, self.modules.len())?;
        let (parent, prefix) = match line.parent {
            Some(parent) => {
                let parent = declared(&self.modules, "module", parent)?;
                (parent.scope, &*parent.path)
            }
            None => (0, ""),
        };
        let own = match line.name.strip_prefix(prefix) {
            Some(own) if prefix.is_empty() => own,
            Some(own) => own.strip_prefix('.').unwrap_or(own),
            None => &line.name,
        };
        let own = String::from(own);
        self.count(line.name.len() + line.class.len())?;
        let own = self.keep(&own)?;
        self.modules.push(Module {
            path: (*line.name).into(),
            class: (*line.class).into(),
            scope: tape.declare(parent, own),
        });
        Ok(())
    }

    /// Returns the scope of a module, or of the run if there is none.
    pub fn scope(&self, module: Option<u64>) -> Result<ScopeId, Fault> {
        module.map_or(Ok(0), |id| Ok(declared(&self.modules, "module", id)?.scope))
    }

    /// Adds a line `param`.
    pub fn param(&mut self, line: &lines::Param<'_>) -> Result<&Param, Fault> {
        next("param", line.id, self.params.len())?;
        let held = declared(&self.layouts, "meta", line.meta.number()?)?.numel();
        let elements = line.elements.map_or(held, |all| all.max(held).min(MOST_ELEMENTS));
        let scope = self.scope(line.module)?;
        let own = line.name.rsplit('.').next().unwrap_or_default();
        let name = self.keep(own)?;
        self.trains |= line.trainable;
        self.params.push(Param {
            name,
            scope,
            storage: line.storage,
            elements,
            trainable: line.trainable,
            buffer: line.buffer,
        });
        declared(&self.params, "param", line.id)
    }
}
