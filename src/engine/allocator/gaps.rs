//! Gaps in the address space between segments.

/// The unit in which the driver takes address space, and its alignment.
pub(super) const CHUNK: u64 = 32 << 20;

/// Address of the start of the chunk that holds `address`.
pub(super) fn chunk_start(address: u64) -> u64 {
    address / CHUNK * CHUNK
}

/// Free address space between segments.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    /// Gaps within the driver's chunks, smaller than a chunk: starts by number of 2 MiB units, lowest last.
    small: [Vec<u64>; Self::CLASSES],
    /// Gaps within the driver's chunks, of a chunk or more: start and end.
    large: Vec<(u64, u64)>,
    /// Runs of whole chunks that the driver does not hold: start and end.
    loose: Vec<(u64, u64)>,
}

impl Gaps {
    /// Granularity of segments, and so of gaps, in bytes.
    pub const UNIT: u64 = 2 << 20;
    const CLASSES: usize = (CHUNK / Self::UNIT) as usize;

    /// Splits the space between two segments into gaps that the driver holds and whole chunks that it does not; from
    /// `first` on it holds everything.
    pub fn add(&mut self, start: u64, end: u64, first: u64) {
        let held_until = if start >= first {
            end
        } else {
            start.next_multiple_of(CHUNK).min(end)
        };
        let held_from = chunk_start(end).min(first.max(held_until)).max(held_until);
        self.hold(start, held_until);
        self.hold(held_from, end);
        if held_until < held_from {
            self.loose.push((held_until, held_from));
        }
    }

    /// Adds a gap in the driver's chunks.
    pub fn hold(&mut self, start: u64, end: u64) {
        let units = ((end - start) / Self::UNIT) as usize;
        match self.small.get_mut(units) {
            Some(_) if units == 0 => {}
            Some(starts) => {
                let at = starts.partition_point(|&other| other > start);
                starts.insert(at, start);
            }
            None => self.large.push((start, end)),
        }
    }

    /// Takes the lowest gap in the driver's chunks that holds `size` bytes.
    pub fn take(&mut self, size: u64) -> Option<u64> {
        let units = (size / Self::UNIT) as usize;
        let small = (units..Self::CLASSES)
            .filter_map(|class| Some((*self.small[class].last()?, class)))
            .min();
        let large = (0..self.large.len())
            .filter(|&at| self.large[at].1 - self.large[at].0 >= size)
            .min_by_key(|&at| self.large[at].0);
        let (start, end) = match (small, large) {
            (Some((start, _)), Some(at)) if self.large[at].0 < start => self.large.swap_remove(at),
            (Some((start, class)), _) => {
                self.small[class].pop();
                (start, start + class as u64 * Self::UNIT)
            }
            (None, at) => self.large.swap_remove(at?),
        };
        self.hold(start + size, end);
        Some(start)
    }

    /// Returns the upper end of the highest run of loose chunks that holds `size` bytes.
    pub fn take_chunks(&mut self, size: u64) -> Option<u64> {
        let run = self
            .loose
            .iter_mut()
            .filter(|(start, end)| end - start >= size)
            .max_by_key(|(start, _)| *start)?;
        run.1 -= size;
        Some(run.1)
    }
}
