//! Numbers as differences from numbers before.

use std::collections::BTreeSet;

/// Storages that are this much older than the newest, or less, are told by their age.
const CLOSE: i64 = 16;

/// A storage's number as a packed line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// So much older than the newest storage.
    Recent(i64),
    /// So much after the last older one that was named: what forward saves, backward takes back in order.
    Far(i64),
    /// So much after the last parameter that was named: layers take theirs in order.
    Parameter(i64),
}

/// The numbers that differences are taken from, the same on both sides.
#[derive(Debug, Default)]
pub struct Chains {
    /// The newest storage.
    newest: i64,
    far: i64,
    parameter: i64,
    module: i64,
    parameters: BTreeSet<i64>,
}

impl Chains {
    /// A storage as a packed line has it.
    pub fn pack(&mut self, storage: i64) -> Reference {
        let age = self.newest - storage;
        if self.parameters.contains(&storage) {
            Reference::Parameter(step(&mut self.parameter, storage))
        } else if age < CLOSE {
            Reference::Recent(age)
        } else {
            Reference::Far(step(&mut self.far, storage))
        }
    }

    /// The storage of a packed line's reference; none if there can be none of that number.
    pub fn unpack(&mut self, reference: Reference) -> Option<i64> {
        let storage = match reference {
            Reference::Recent(age) => self.newest.checked_sub(age)?,
            Reference::Far(by) => advance(&mut self.far, by)?,
            Reference::Parameter(by) => advance(&mut self.parameter, by)?,
        };
        (storage >= 0).then_some(storage)
    }

    /// The storage of a parameter that is declared, after the last that was named.
    pub fn pack_parameter(&mut self, storage: i64) -> i64 {
        self.parameters.insert(storage);
        step(&mut self.parameter, storage)
    }

    /// The storage of a parameter that is declared so much after the last that was named.
    pub fn unpack_parameter(&mut self, by: i64) -> Option<i64> {
        let storage = advance(&mut self.parameter, by).filter(|storage| *storage >= 0)?;
        self.parameters.insert(storage);
        Some(storage)
    }

    /// A storage that came to be, after the newest.
    pub const fn pack_new(&self, storage: i64) -> i64 {
        storage - self.newest
    }

    /// The storage that came to be so much after the newest.
    pub fn unpack_new(&self, by: i64) -> Option<i64> {
        self.newest.checked_add(by).filter(|storage| *storage >= 0)
    }

    /// This storage is the newest from now on.
    pub const fn set_newest(&mut self, storage: i64) {
        self.newest = storage;
    }

    /// A module after the last.
    pub const fn pack_module(&mut self, module: i64) -> i64 {
        step(&mut self.module, module)
    }

    /// The module so much after the last.
    pub fn unpack_module(&mut self, by: i64) -> Option<i64> {
        advance(&mut self.module, by).filter(|module| *module >= 0)
    }
}

/// The difference to the last number, which this one becomes.
const fn step(last: &mut i64, now: i64) -> i64 {
    let by = now - *last;
    *last = now;
    by
}

fn advance(last: &mut i64, by: i64) -> Option<i64> {
    *last = last.checked_add(by)?;
    Some(*last)
}
