use super::protocol::Slot;

/// One of something for each slot, the most urgent first. There are few slots: a list is smaller than a
/// tree.
pub struct Slots<T>(Vec<(Slot, T)>);

impl<T> Slots<T> {
    fn place(&self, slot: Slot) -> Result<usize, usize> {
        self.0.binary_search_by_key(&slot, |(known, _)| *known)
    }

    /// What the slot has.
    #[cfg(target_arch = "wasm32")]
    pub fn get(&self, slot: Slot) -> Option<&T> {
        self.place(slot).ok().map(|at| &self.0[at].1)
    }

    /// Gives the slot this, in place of what it has.
    pub fn insert(&mut self, slot: Slot, item: T) {
        match self.place(slot) {
            Ok(at) => self.0[at].1 = item,
            Err(at) => self.0.insert(at, (slot, item)),
        }
    }

    /// Takes what the slot has.
    pub fn remove(&mut self, slot: Slot) -> Option<T> {
        self.place(slot).ok().map(|at| self.0.remove(at).1)
    }

    /// Takes the first that is wanted, the most urgent slot's first.
    pub fn pop_first(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<(Slot, T)> {
        let at = self.0.iter().position(|(_, item)| is_wanted(item))?;
        Some(self.0.remove(at))
    }

    /// Everything, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, item)| item)
    }

    /// Every slot that has something, the most urgent first.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.0.iter().map(|(slot, item)| (*slot, item))
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
