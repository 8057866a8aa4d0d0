/// The unit in which the driver takes address space, and its alignment.
pub(super) const CHUNK: u64 = 32 << 20;

/// Where the chunk of an address starts.
pub(super) fn chunk_start(address: u64) -> u64 {
    address / CHUNK * CHUNK
}

/// Free address space between segments.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    /// Held by the driver, less than a chunk: starts by number of 2 MiB units, lowest last.
    small: [Vec<u64>; Self::CLASSES],
    /// Held by the driver, a chunk or more: start and end.
    large: Vec<(u64, u64)>,
    /// Not held: runs of whole chunks, start and end.
    loose: Vec<(u64, u64)>,
}

impl Gaps {
    /// Segments and so gaps are multiples of this.
    pub const UNIT: u64 = 2 << 20;
    const CLASSES: usize = (CHUNK / Self::UNIT) as usize;

    /// Sorts the space between two segments into what the driver holds and whole chunks that it does
    /// not; from `first` on it holds everything.
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

    /// Notes a gap in the driver's chunks.
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

    /// The lowest gap in the driver's chunks that takes `size` bytes.
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

    /// The upper end of the highest run of loose chunks that takes `size` bytes.
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
