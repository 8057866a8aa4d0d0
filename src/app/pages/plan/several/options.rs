//! Options of a strategy: mixed precision, memory of the host, network.

use leptos::prelude::*;
use vramscope_engine::setup::Strategy;

use crate::shell::Store;
use crate::state::Key;
use crate::widgets::{Entry, Number, Select, Switch};

/// Words for what a strategy can keep in the memory of the host.
pub const fn offloads(strategy: Strategy) -> &'static [&'static str] {
    match strategy {
        Strategy::Fsdp | Strategy::FsdpNoReshard | Strategy::Fsdp1 | Strategy::Fsdp1NoReshard => &["false", "true"],
        Strategy::Deepspeed1 | Strategy::Deepspeed2 => &["false", "optimizer"],
        _ => &["false"],
    }
}

/// Returns true for the strategies whose gradients are reduced in DDP's buckets.
pub const fn has_buckets(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::Ddp | Strategy::DdpView)
}

/// Options that the chosen strategy has; those that are entered without meaning are shown too, so that they can be taken
/// back.
#[component]
pub fn Options() -> impl IntoView {
    let store = Store::get();
    let strategy = Memo::new(move |_| {
        let named = store.reading().with(|r| Strategy::named(r.good.get(Key::Strategy)));
        named.unwrap_or(Strategy::Fsdp)
    });
    let mp = Memo::new(move |_| strategy.get().shards_parameters() || store.has(Key::Mp));
    let offloads = Memo::new(move |_| {
        let mut all = offloads(strategy.get()).to_vec();
        let entered = store.text(Key::Offload);
        all.extend(
            Key::Offload
                .choices()
                .iter()
                .filter(|word| **word == entered && !all.contains(*word))
                .copied()
                .collect::<Vec<_>>(),
        );
        all
    });
    let is_deepspeeds = Memo::new(move |_| strategy.get().is_deepspeeds() || store.has(Key::Zero));
    let has_buckets = Memo::new(move |_| has_buckets(strategy.get()) || store.has(Key::Bucket));
    view! {
        <Show when=move || mp.get()>
            <Switch key=Key::Mp />
        </Show>
        <Show when=move || offloads.with(|all| all.len() > 1)>
            <Select key=Key::Offload choices=offloads />
        </Show>
        <Show when=move || has_buckets.get()>
            <Number key=Key::Bucket step=25 />
        </Show>
        <Show when=move || is_deepspeeds.get()>
            <Entry key=Key::Zero placeholder="reduce_bucket_size=2e8" />
        </Show>
        <Entry key=Key::Link placeholder="auto" />
    }
}
