//! Progress and statistics of the search.

use leptos::prelude::*;
use vramscope_engine::format::grouped;

use super::page::PlansState;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;

/// Progress of the search, with a stop button.
#[component]
pub fn Progress() -> impl IntoView {
    let i18n = use_i18n();
    let page = PlansState::get();
    let now = move || page.news.with(|news| news.as_ref().map_or([0, 0], |news| news.setups));
    let is_checking = move || page.plan(|_| ()).is_some();
    let words = move || {
        let [done, of] = now();
        if is_checking() {
            return t_string!(i18n, recommend.checking).to_string();
        }
        let fitting = page.news.with(|news| news.as_ref().map_or(0, |news| news.fitting));
        t_string!(
            i18n,
            recommend.searching,
            done = grouped(done as u64),
            of = grouped(of as u64),
            fitting = grouped(fitting as u64)
        )
        .to_string()
    };
    view! {
        <div role="status" data-testid="plan-status" data-value=move || page.at_work.get().to_string()>
            {part(move || {
                page.at_work.get().then(|| {
                    view! {
                        <div class="progress" data-testid="plan-progress" data-value=move || now()[0].to_string()>
                            <progress
                                max=move || now()[1].max(1).to_string()
                                value=move || now()[0].to_string()
                                aria-label=words
                            ></progress>
                            <span class="muted small">{words}</span>
                            <button type="button" class="tool" data-testid="plan-stop" on:click=move |_| page.stop()>
                                {t!(i18n, progress.stop)}
                            </button>
                        </div>
                    }
                    .into_any()
                })
            })}
        </div>
    }
}

/// Shows how setups were decided, the sources of the times, and what was not searched.
#[component]
pub fn Searched() -> impl IntoView {
    let i18n = use_i18n();
    let page = PlansState::get();
    part(move || {
        let news = page.news.get()?;
        let plan = news.plan.as_ref()?;
        let decided = plan.searched;
        let count = |n: usize| grouped(n as u64);
        let words = t_string!(
            i18n,
            recommend.searched,
            setups = count(decided.setups),
            recorded = count(decided.recorded),
            summed = count(decided.summed),
            bounded = count(decided.bounded),
            dominated = count(decided.dominated),
            refused = count(decided.refused)
        )
        .to_string();
        let times = match &news.sources {
            Some([kernels, host]) => {
                t_string!(i18n, recommend.times, kernels = kernels.clone(), host = host.clone()).to_string()
            }
            None => t_string!(i18n, recommend.no_times).to_string(),
        };
        let view = view! {
            <section class="card muted small" data-testid="plan-searched" data-value=decided.setups.to_string()>
                <p>{words}</p>
                <p>{times}</p>
                <p>{t!(i18n, recommend.not_searched)} " " {plan.not_searched.join("; ")} "."</p>
            </section>
        };
        Some(view.into_any())
    })
}
