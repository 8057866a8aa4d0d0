//! Runs the plan's search with a progress bar; Ctrl-C ends it early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use vramscope_engine::device::Device;
use vramscope_engine::units::Bytes;
use vramscope_plan::search::{Found, Question, Search, Space};
use vramscope_time::Costs;

use crate::failure::Failure;
use crate::predict::guarded;

/// Searches a space. Ctrl-C ends the search and keeps its results so far; a second one ends the program.
///
/// # Errors
/// If the engine fails.
pub fn run(
    space: &Space,
    device: Option<&'static Device>,
    costs: Option<&Costs<'_>>,
    room: Bytes,
) -> Result<Found, Failure> {
    let stopped = stop_flag();
    let mut search = Search::new(Question {
        space: space.clone(),
        device,
        costs,
        room,
    });
    let (_, passes) = search.progress();
    let bar = ProgressBar::new(passes as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg} {eta} left") {
        bar.set_style(style);
    }
    while !stopped.load(Ordering::Relaxed) && guarded(|| Ok(search.step()))? {
        bar.set_position(search.progress().0 as u64);
        bar.set_message(format!("{} fit", search.found().fitting.len()));
    }
    bar.finish_and_clear();
    let (done, all) = search.progress();
    if done < all {
        anstream::eprintln!(
            "warning: stopped after {done} of {all} classes of setups; the remaining ones were skipped"
        );
    }
    guarded(|| Ok(search.close()))
}

fn stop_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    // Without a handler Ctrl-C ends the program at once, and only the answer is lost.
    let _ = ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    flag
}
