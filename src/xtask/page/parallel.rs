//! Works on several files at once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Failure;

/// Runs `work` on each file, in order of start, on as many threads as there are cores.
///
/// # Errors
/// The first failure of any thread; the others end with their current file's.
pub fn for_each(files: &[PathBuf], work: impl Fn(&PathBuf) -> Result<(), Failure> + Sync) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let share = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(file).inspect_err(|_| next.store(files.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(share)).collect();
        let failed = |_| Err(Failure::new("a thread panicked"));
        all.into_iter().try_for_each(|one| one.join().unwrap_or_else(failed))
    })
}
