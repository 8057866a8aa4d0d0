//! The course's rules of thumb by card memory.

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};

/// The course's settings for video models (V.cards): memory, cards, accumulation, micro-batch, pixels, frames.
const CARDS: [(&str, &str, [u64; 4]); 3] = [
    ("8 GB", "RTX 3070", [8, 1, 112, 8]),
    ("12 GB", "RTX 3080 Ti, 4070 Ti", [4, 1, 224, 8]),
    ("≥ 24 GB", "RTX 3090, A100", [2, 2, 224, 16]),
];

/// Table of the course's settings for the same sizes of memory, by a rule of thumb.
#[component]
pub fn CourseCards() -> impl IntoView {
    let i18n = use_i18n();
    let rows: Vec<_> = CARDS
        .into_iter()
        .map(|(memory, cards, numbers)| {
            let numbers: Vec<_> = numbers
                .into_iter()
                .map(|number| view! { <td class="plans-number">{number.to_string()}</td> })
                .collect();
            view! { <tr><th scope="row">{memory}<small class="muted">{cards}</small></th>{numbers}<td class="plans-number">"16"</td></tr> }
        })
        .collect();
    view! {
        <section class="card" data-testid="course-cards">
            <h2>{t!(i18n, recommend.course)}</h2>
            <p class="muted small">{t!(i18n, recommend.course_explain)}</p>
            <div class="plans-scroll" tabindex="0" role="region" aria-label=move || t_string!(i18n, recommend.course)>
                <table class="plans-table">
                    <thead>
                        <tr>
                            <th scope="col">{t!(i18n, recommend.card)}</th>
                            <th scope="col">{t!(i18n, setup.accum)}</th>
                            <th scope="col">{t!(i18n, setup.batch)}</th>
                            <th scope="col">{t!(i18n, recommend.pixels)}</th>
                            <th scope="col">{t!(i18n, setup.frames)}</th>
                            <th scope="col">{t!(i18n, recommend.bits)}</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </section>
    }
}
