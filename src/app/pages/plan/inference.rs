use leptos::prelude::*;
use vramscope_engine::format::{exact, gib, grouped};
use vramscope_engine::units::Bytes;

use crate::i18n::{Words, t_string, use_i18n};
use crate::part::part;
use crate::simulation::{Outcome, Simulation};
use crate::words;
use crate::worker::view::Inference;

/// The figures of a model that does not train.
#[component]
pub fn InferenceNumbers() -> impl IntoView {
    let i18n = use_i18n();
    let outcome = Simulation::get().outcome;
    part(move || match outcome.get() {
        Outcome::Inference(pass) => {
            Some(view! { <dl class="figures">{rows(i18n, &pass).collect_view()}</dl> }.into_any())
        }
        _ => None,
    })
}

fn rows(i18n: Words, pass: &Inference) -> impl Iterator<Item = impl IntoView + use<>> + use<> {
    let of = &pass.figures;
    let outside = pass.card.as_ref().map_or(Bytes::ZERO, |card| card.fit.outside_torch());
    let bytes = [
        (t_string!(i18n, numbers.allocated), "peak-allocated", of.peak_allocated),
        (t_string!(i18n, numbers.reserved), "peak-reserved", of.peak_reserved),
        (t_string!(i18n, numbers.outside), "outside-torch", outside),
        (t_string!(i18n, numbers.after_model), "after-model", of.after_model),
        (t_string!(i18n, numbers.with_outputs), "with-outputs", of.with_outputs),
        (t_string!(i18n, numbers.cache), "cache", of.cache),
    ];
    let bytes = bytes.map(|(name, testid, bytes)| (name, testid, bytes.get(), gib(bytes), exact(bytes)));
    let params = (
        t_string!(i18n, numbers.params),
        "params",
        of.params,
        words::count(i18n, of.params),
        grouped(of.params),
    );
    bytes
        .into_iter()
        .chain([params])
        .map(|(name, testid, value, shown, exact)| {
            view! {
                <div class="figure">
                    <dt>{name}</dt>
                    <dd>
                        <strong data-testid=testid data-value=value.to_string()>
                            {shown}
                        </strong>
                        <span class="exact">{exact}</span>
                    </dd>
                </div>
            }
        })
}
