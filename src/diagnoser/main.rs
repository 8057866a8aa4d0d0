//! Reads files for the page `/diagnose`, and simulates the run that they are of. A program of its own: whoever
//! plans a run never loads it, and what a large file takes is given back when its worker ends.

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

    /// What findings and the page say in a language: a list of objects of phrases, as JSON.
    #[wasm_bindgen]
    pub fn phrases(language: &str) -> String {
        words::phrases(language)
    }

    /// Begins a file of about so many bytes, unpacked; says why, if that is too many.
    #[wasm_bindgen]
    pub fn begin(name: &str, size: f64) -> Option<String> {
        SESSION.with_borrow_mut(|session| session.begin(name, size as u64))
    }

    /// Takes in the next bytes of the file.
    #[wasm_bindgen]
    pub fn feed(bytes: &[u8]) {
        SESSION.with_borrow_mut(|session| session.feed(bytes));
    }

    /// Reads the file that was taken in.
    #[wasm_bindgen]
    pub fn end() {
        SESSION.with_borrow_mut(Session::end);
    }

    /// Takes the run's model and setup, as JSON; an empty text where they are not known.
    #[wasm_bindgen]
    pub fn know(run: &str) {
        SESSION.with_borrow_mut(|session| session.know(run));
    }

    /// What all files together mean, as JSON.
    #[wasm_bindgen]
    pub fn answer() -> String {
        SESSION.with_borrow(Session::answer)
    }

    /// Tries the next change of the setup: JSON, or nothing where all are tried.
    #[wasm_bindgen(js_name = tryNext)]
    pub fn try_next() -> Option<String> {
        SESSION.with_borrow_mut(Session::try_next)
    }

    /// Measures one after another until the setup trains, as JSON.
    #[wasm_bindgen]
    pub fn ladder() -> Option<String> {
        SESSION.with_borrow(Session::ladder)
    }

    /// Columns of a recording's curve between two events, as JSON.
    #[wasm_bindgen]
    pub fn columns(recording: usize, by_frame: bool, from: u32, to: u32, most: u32) -> String {
        SESSION.with_borrow(|session| session.columns(recording, by_frame, from..to, most))
    }

    /// What lives after an event of a recording, as JSON.
    #[wasm_bindgen]
    pub fn instant(recording: usize, event: u32) -> String {
        SESSION.with_borrow(|session| session.instant(recording, event))
    }
}
