//! Reads files for the page `/diagnose` and simulates the run that they belong to. A program of its own, so that
//! planning a run never loads it, and so that the memory taken by a large file is freed when its worker ends.

#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "runs in the browser only"))]

mod answer;
mod run;
mod session;
mod words;

fn main() {}

#[cfg(target_arch = "wasm32")]
mod exports {
    use std::cell::RefCell;

    use wasm_bindgen::prelude::wasm_bindgen;

    use super::session::Session;
    use super::words;

    thread_local!(static SESSION: RefCell<Session> = RefCell::default());

    /// Returns the phrases of findings in a language: a JSON object.
    #[wasm_bindgen]
    pub fn phrases(language: &str) -> String {
        words::phrases(language)
    }

    /// Starts a file of about `size` bytes, unpacked; returns the reason if that is too large.
    #[wasm_bindgen]
    pub fn begin(name: &str, size: f64) -> Option<String> {
        SESSION.with_borrow_mut(|session| session.begin(name, size as u64))
    }

    /// Appends bytes to the file.
    #[wasm_bindgen]
    pub fn feed(bytes: &[u8]) {
        SESSION.with_borrow_mut(|session| session.feed(bytes));
    }

    /// Parses the file received.
    #[wasm_bindgen]
    pub fn end() {
        SESSION.with_borrow_mut(Session::end);
    }

    /// Sets the run's model and setup from JSON; an empty text clears it.
    #[wasm_bindgen]
    pub fn know(run: &str) {
        SESSION.with_borrow_mut(|session| session.know(run));
    }

    /// Returns the diagnosis of all files together, as JSON.
    #[wasm_bindgen]
    pub fn answer() -> String {
        SESSION.with_borrow(Session::answer)
    }

    /// Tries the next change to the setup and returns JSON; `None` if all are tried.
    #[wasm_bindgen(js_name = tryNext)]
    pub fn try_next() -> Option<String> {
        SESSION.with_borrow_mut(Session::try_next)
    }

    /// Applies the planner's measures one after another until the setup trains; returns JSON.
    #[wasm_bindgen]
    pub fn ladder() -> Option<String> {
        SESSION.with_borrow(Session::ladder)
    }

    /// Returns columns of a recording's curve between two events, as JSON.
    #[wasm_bindgen]
    pub fn columns(recording: usize, by_frame: bool, from: u32, to: u32, most: u32) -> String {
        SESSION.with_borrow(|session| session.columns(recording, by_frame, from..to, most))
    }

    /// Returns the allocations live after an event of a recording, as JSON.
    #[wasm_bindgen]
    pub fn instant(recording: usize, event: u32) -> String {
        SESSION.with_borrow(|session| session.instant(recording, event))
    }
}
