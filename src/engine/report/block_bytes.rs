//! Compact table of block sizes.

use crate::tape::log::StorageId;

/// Bytes of each storage's block, in little memory: a run has tens of thousands, and few are 2 GiB or larger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BlockBytes {
    /// Bytes, or an index into `large` with the bit [`LARGE`] set.
    of: Vec<u32>,
    large: Vec<u64>,
}

/// Marks an entry as an index into `large`.
const LARGE: u32 = 1 << 31;

impl BlockBytes {
    /// Bytes of a storage's block.
    #[inline]
    pub fn of(&self, id: StorageId) -> u64 {
        let of = self.of[id as usize];
        if of & LARGE == 0 {
            u64::from(of)
        } else {
            self.large[(of & !LARGE) as usize]
        }
    }
}

impl FromIterator<u64> for BlockBytes {
    fn from_iter<T: IntoIterator<Item = u64>>(bytes: T) -> Self {
        let mut large = Vec::new();
        let of = bytes.into_iter().map(|bytes| match u32::try_from(bytes) {
            Ok(of) if of & LARGE == 0 => of,
            _ => {
                large.push(bytes);
                (large.len() - 1) as u32 | LARGE
            }
        });
        Self {
            of: of.collect(),
            large,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_size_keep_their_bytes() {
        let bytes = [512, (1 << 31) - 512, 1 << 31, 512, 70 << 30, u64::from(u32::MAX) + 1];
        let kept: BlockBytes = bytes.into_iter().collect();
        let read: Vec<u64> = (0..bytes.len() as StorageId).map(|id| kept.of(id)).collect();
        assert_eq!(read, bytes);
    }
}
