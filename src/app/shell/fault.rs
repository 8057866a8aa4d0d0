//! Reports crashes of the program. The entries survive in the URL. The panel is plain JavaScript, `src/app/js/fault.js`,
//! because it must work after this program has stopped.

use leptos::prelude::*;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::i18n::{Words, t_string};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = vramscope, js_name = fault)]
    fn show_fault(what: &str, stopped: bool);
    #[wasm_bindgen(js_namespace = vramscope, js_name = faultWords)]
    fn fault_words(title: &str, page: &str, worker: &str, copy: &str, copied: &str, reload: &str, version: &str);
    #[wasm_bindgen(js_namespace = vramscope, js_name = faultOver)]
    fn fault_over();
}

/// Shows the panel at a panic, in addition to logging it.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        show_fault(&info.to_string(), true);
    }));
}

/// Keeps the panel's text in the page's language.
pub fn follow(i18n: Words) {
    Effect::new(move || {
        fault_words(
            t_string!(i18n, fault.title),
            t_string!(i18n, fault.page),
            t_string!(i18n, fault.worker),
            t_string!(i18n, fault.copy),
            t_string!(i18n, fault.copied),
            t_string!(i18n, fault.reload),
            env!("CARGO_PKG_VERSION"),
        );
    });
}

/// Shows that the worker crashed while the page still runs.
pub fn of_worker(what: &str) {
    show_fault(what, false);
}

/// Hides the panel once the worker answers again.
pub fn over() {
    fault_over();
}
