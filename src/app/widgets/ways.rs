//! Ways out of a refusal, one press each.

use leptos::prelude::*;
use vramscope_engine::simulate::Change;

use crate::i18n::use_i18n;
use crate::part::text;
use crate::state::{Draft, Key};
use crate::words;
use crate::worker::Refusal;

/// Buttons for the ways out of a refusal; nothing if there are none.
#[component]
pub fn WaysOut(
    /// The refusal.
    why: Refusal,
    /// Takes a way.
    take: Callback<Change>,
) -> impl IntoView {
    let i18n = use_i18n();
    let ways = match &why {
        Refusal::Setup(why) => why.ways(),
        Refusal::Model(_) => Vec::new(),
    };
    let button = move |way: Change| {
        let taken = way.clone();
        view! {
            <button type="button" class="tool" data-testid="way-out" on:click=move |_| take.run(taken.clone())>
                {text(move || words::way_out(i18n, &way))}
            </button>
        }
    };
    let buttons: Vec<_> = ways.into_iter().map(button).collect();
    (!buttons.is_empty()).then(|| view! { <div class="ways-out">{buttons}</div> })
}

/// Takes a way out for a set of entries.
pub fn take_way(draft: &mut Draft, way: &Change) {
    match way {
        Change::Set(all) => {
            for (name, value) in all {
                if let Some(key) = Key::named(name) {
                    draft.set(key, value.to_string());
                }
            }
        }
        // Left out, an entry is what it is by default.
        Change::LeaveOut(all) => {
            for key in all.iter().filter_map(|name| Key::named(name)) {
                draft.set(key, key.default_text());
            }
        }
    }
}
