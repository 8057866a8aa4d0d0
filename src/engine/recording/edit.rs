//! Replaces ranges of a list, and tells where positions in it move.

/// Replacements of ranges of a list, in ascending order.
pub(super) struct Edit<T>(Vec<([usize; 2], Vec<T>)>);

impl<T> Default for Edit<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> Edit<T> {
    /// Replaces a range, which begins at or after the end of the one before.
    pub fn replace(&mut self, range: [usize; 2], by: Vec<T>) {
        self.0.push((range, by));
    }

    /// Returns the list with all ranges replaced.
    pub fn applied(&self, list: &[T]) -> Vec<T> {
        let mut out = Vec::with_capacity(list.len());
        let mut done = 0;
        for ([begin, end], by) in &self.0 {
            out.extend_from_slice(&list[done..*begin]);
            out.extend_from_slice(by);
            done = *end;
        }
        out.extend_from_slice(&list[done..]);
        out
    }

    /// Returns where a position of the list moves. One inside a replaced range moves to the range's end.
    pub fn moved(&self, at: usize) -> usize {
        let mut moved = at as isize;
        for ([begin, end], by) in self.0.iter().take_while(|([begin, _], _)| *begin < at) {
            let replaced = (*end).min(at) - begin;
            moved += by.len() as isize - replaced as isize;
        }
        moved as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_replaced_and_positions_move_with_them() {
        let list: Vec<u8> = (0..10).collect();
        let mut edit = Edit::default();
        edit.replace([2, 5], vec![50, 51]);
        edit.replace([7, 7], vec![70]);
        edit.replace([8, 9], Vec::new());
        assert_eq!(edit.applied(&list), [0, 1, 50, 51, 5, 6, 70, 7, 9]);
        let moved: Vec<usize> = (0..=10).map(|at| edit.moved(at)).collect();
        assert_eq!(moved, [0, 1, 2, 4, 4, 4, 5, 6, 8, 8, 9]);
    }
}
