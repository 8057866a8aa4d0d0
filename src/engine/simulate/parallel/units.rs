//! Units of sharding: every block, and the rest of the model.

use std::collections::HashMap;

use crate::tape::log::{Log, ScopeId};

/// Index of a unit; the root, which has everything outside the blocks, is the first.
pub type Unit = usize;

/// The root: everything outside the blocks.
pub const ROOT: Unit = 0;

/// Fewest modules of a list whose members are sharded one by one.
pub(super) const LEAST_BLOCKS: usize = 4;

/// The unit of each module.
pub struct Units {
    of: Vec<Unit>,
    /// Number of units.
    pub count: usize,
}

impl Units {
    /// Makes every member of a list of at least four modules a unit; of nested lists, the innermost.
    ///
    /// A module gets a new scope in each forward, so it is identified by its path, not its scope.
    pub fn of(log: &Log) -> Self {
        let mut paths: HashMap<String, usize> = HashMap::new();
        let listed: Vec<Option<(String, usize)>> = (0..log.scopes.len()).map(|id| member(log, id as ScopeId)).collect();
        for (list, index) in listed.iter().flatten() {
            let longest = paths.entry(list.clone()).or_default();
            *longest = (*longest).max(index + 1);
        }
        let mut known: HashMap<String, Unit> = HashMap::new();
        let mut of = vec![ROOT; log.scopes.len()];
        for id in 0..log.scopes.len() {
            let own = listed[id].as_ref().filter(|(list, _)| paths[list] >= LEAST_BLOCKS);
            of[id] = match own {
                Some((list, index)) => {
                    let next = known.len() + 1;
                    *known.entry(format!("{list}.{index}")).or_insert(next)
                }
                // A module comes after the one around it.
                None => of[log.scopes[id].parent as usize],
            };
        }
        Self {
            of,
            count: known.len() + 1,
        }
    }

    /// The unit of a module.
    pub fn unit(&self, scope: ScopeId) -> Unit {
        self.of[scope as usize]
    }
}

/// Returns the path of the list that a module is a member of, and its index in it.
fn member(log: &Log, id: ScopeId) -> Option<(String, usize)> {
    let scope = &log.scopes[id as usize];
    let index = scope.index?;
    let mut list = log.path(scope.parent);
    list.push('.');
    list.push_str(scope.name);
    Some((list, index as usize))
}

/// A path with `#` for each index in a list.
pub(super) fn pattern(path: &str) -> String {
    let parts = path.split('.').map(|part| match part.parse::<usize>() {
        Ok(_) => "#",
        Err(_) => part,
    });
    parts.collect::<Vec<&str>>().join(".")
}
