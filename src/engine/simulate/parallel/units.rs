//! What is sharded as one: every block, and what is left.

use std::collections::HashMap;

use crate::tape::log::{Log, ScopeId};

/// Number of a unit; the whole model, which has what no block has, is the first.
pub type Unit = usize;

/// What no block has.
pub const ROOT: Unit = 0;

/// Fewest modules of a list whose members are sharded one by one.
const LEAST_BLOCKS: u32 = 4;

/// The unit of each module.
pub struct Units {
    of: Vec<Unit>,
    /// Number of units.
    pub count: usize,
}

impl Units {
    /// Every member of a list of at least four modules is a unit; where lists are nested, the innermost.
    ///
    /// A module is entered anew in each forward, so that its path names it, not its number.
    pub fn of(log: &Log) -> Self {
        let mut paths: HashMap<String, u32> = HashMap::new();
        let listed: Vec<Option<(String, u32)>> = (0..log.scopes.len()).map(|id| member(log, id as ScopeId)).collect();
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

/// The path of the list that a module is a member of, and its place there.
fn member(log: &Log, id: ScopeId) -> Option<(String, u32)> {
    let scope = &log.scopes[id as usize];
    let index = scope.index?;
    let mut list = log.path(scope.parent);
    list.push('.');
    list.push_str(scope.name);
    Some((list, index))
}
