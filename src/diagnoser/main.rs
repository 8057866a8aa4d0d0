//! Reads files for the page `/diagnose`. A program of its own: whoever plans a run never loads its readers,
//! and what a large file takes is given back when its worker ends.

#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "runs in the browser only"))]

mod session;

fn main() {}

#[cfg(target_arch = "wasm32")]
mod exports {
    use std::cell::RefCell;

    use wasm_bindgen::prelude::wasm_bindgen;

    use super::session::Session;

    thread_local!(static SESSION: RefCell<Session> = RefCell::default());

    /// Takes in a file, unpacked.
    #[wasm_bindgen]
    pub fn add(name: &str, bytes: &[u8]) {
        SESSION.with_borrow_mut(|session| session.add(name, bytes));
    }

    /// What all files together mean, as JSON.
    #[wasm_bindgen]
    pub fn answer() -> String {
        SESSION.with_borrow(Session::answer)
    }
}
