//! Recommended setup.

use leptos::prelude::*;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::units::{Bytes, Seconds};
use vramscope_engine::verdict::Verdict;
use vramscope_plan::{Choice, Plan, Reason};

use super::entries::{name, planner, summary, value};
use super::page::PlansState;
use crate::charts::{Bar, Segment};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;

/// Shows the recommended setup with its figures, and the reason for each entry.
#[component]
pub fn Recommended() -> impl IntoView {
    let i18n = use_i18n();
    let (page, store) = (PlansState::get(), Store::get());
    part(move || {
        let news = page.news.get()?;
        let plan = news.plan.as_ref()?;
        let best = plan.recommended.as_ref()?;
        let pairs: Vec<_> = summary(i18n, best)
            .into_iter()
            .map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> })
            .collect();
        let href = planner(store, best);
        let link = view! { <a class="tool" href=href data-testid="plan-open">{t!(i18n, recommend.open_planner)}</a> };
        let reserved = best.reserved();
        let value = serde_json::to_string(best).unwrap_or_default();
        let view = view! {
            <section class="card plans-best" data-testid="plan-recommended" data-value=value>
                <h2>{t!(i18n, recommend.run)}</h2>
                <dl class="plans-entries-told">{pairs}</dl>
                <Room bytes=reserved of=plan.limit planned=plan.planned />
                <p>{figures(i18n, plan, best)}</p>
                <p class="plans-tools">{link}</p>
                <Reasons reasons=plan.reasons.clone() />
            </section>
        };
        Some(view.into_any())
    })
}

/// Bar of the memory used out of a limit, with a mark where the margin begins.
#[component]
pub fn Room(bytes: Bytes, of: Bytes, planned: Bytes) -> impl IntoView {
    let whole = bytes.max(of).get().max(1) as f64;
    let segment = Segment {
        class: if bytes > planned { "plans-over" } else { "plans-taken" },
        share: bytes.get() as f64 / whole,
        title: gib(bytes),
    };
    let mark = format!("{:.3}%", planned.get() as f64 / whole * 100.0);
    view! {
        <span class="plans-room" aria-hidden="true">
            <Bar segments=vec![segment] />
            <span class="plans-mark" style:left=mark></span>
        </span>
    }
}

fn figures(i18n: Words, plan: &Plan, best: &Choice) -> String {
    let reserved = best.reserved();
    let (shown, planned, limit) = (gib(reserved), gib(plan.planned), gib(plan.limit));
    let mut all = vec![match reserved > plan.planned {
        false => t_string!(
            i18n,
            recommend.within,
            reserved = shown,
            planned = planned,
            limit = limit
        )
        .to_string(),
        true => t_string!(
            i18n,
            recommend.squeezed,
            reserved = shown,
            planned = planned,
            limit = limit
        )
        .to_string(),
    }];
    if let (Some(ms), Some(rate)) = (best.step_ms, best.samples_per_s) {
        let step = Seconds::new(ms / 1e3).to_string();
        let samples = grouped(best.samples);
        all.push(
            t_string!(
                i18n,
                recommend.speed,
                step = step,
                samples = samples,
                rate = format!("{rate:.2}")
            )
            .to_string(),
        );
    }
    all.extend(
        best.next_batch
            .map(|(batch, trains)| match (trains, best.next_verdict) {
                (true, _) => t_string!(i18n, recommend.next_trains, batch = batch.to_string()).to_string(),
                (false, None | Some(Verdict::Oom)) => {
                    t_string!(i18n, recommend.next_oom, batch = batch.to_string()).to_string()
                }
                (false, Some(_)) => t_string!(i18n, recommend.next_tight, batch = batch.to_string()).to_string(),
            }),
    );
    if best.retries.is_some_and(|retries| retries > 0) {
        all.push(t_string!(i18n, recommend.retries).to_string());
    }
    all.join(" ")
}

#[component]
fn Reasons(reasons: Vec<Reason>) -> impl IntoView {
    let i18n = use_i18n();
    if reasons.is_empty() {
        return view! { <p class="muted">{t!(i18n, recommend.as_it_is)}</p> }.into_any();
    }
    let rows: Vec<_> = reasons
        .into_iter()
        .map(|reason| {
            let Reason { key, from, to, .. } = &reason;
            let change = format!("{} → {}", value(i18n, key, from), value(i18n, key, to));
            view! {
                <tr data-testid="plan-reason" data-name=key.clone() data-value=reason.saves.map(|b| b.to_string())>
                    <th scope="row">{name(i18n, key)}</th>
                    <td data-label=t_string!(i18n, recommend.change)>{change}</td>
                    <td class="plans-number" data-label=t_string!(i18n, recommend.saves)>
                        {reason.saves.map(|saves| saved(i18n, saves))}
                    </td>
                    <td class="plans-number" data-label=t_string!(i18n, recommend.pays)>
                        {reason.seconds.map(|seconds| paid(i18n, seconds))}
                    </td>
                    <td class="plans-why">
                        {why(i18n, key, to)} " " {reason.needed.then(|| t!(i18n, recommend.needed))}
                    </td>
                </tr>
            }
        })
        .collect();
    view! {
        <h3>{t!(i18n, recommend.reasons)}</h3>
        <div class="plans-scroll" tabindex="0" role="region" aria-label=move || t_string!(i18n, recommend.reasons)>
            <table class="plans-table stacks">
                <thead>
                    <tr>
                        <th scope="col">{t!(i18n, recommend.entry)}</th>
                        <th scope="col">{t!(i18n, recommend.change)}</th>
                        <th scope="col">{t!(i18n, recommend.saves)}</th>
                        <th scope="col">{t!(i18n, recommend.pays)}</th>
                        <th scope="col">{t!(i18n, recommend.why)}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn saved(i18n: Words, bytes: i64) -> String {
    let size = gib(Bytes::new(bytes.unsigned_abs()));
    match bytes {
        ..0 => t_string!(i18n, recommend.takes_more, bytes = size).to_string(),
        _ => size,
    }
}

fn paid(i18n: Words, seconds: f64) -> String {
    let time = Seconds::new(seconds.abs()).to_string();
    match seconds > 0.0 {
        true => time,
        false => t_string!(i18n, recommend.faster, time = time).to_string(),
    }
}

/// Explains what a change does.
fn why(i18n: Words, key: &str, to: &str) -> String {
    match (key, to) {
        ("ckpt", "none") => t_string!(i18n, recommend.why_ckpt_none).to_string(),
        ("ckpt", _) => t_string!(i18n, recommend.why_ckpt).to_string(),
        ("optim", "adamw_fused") => t_string!(i18n, recommend.why_fused).to_string(),
        ("optim", "adamw_8bit") => t_string!(i18n, recommend.why_8bit).to_string(),
        ("optim", "paged_adamw" | "paged_adamw_8bit" | "paged_lion" | "paged_lion_8bit") => {
            t_string!(i18n, recommend.why_paged).to_string()
        }
        ("optim", "adafactor" | "adafactor_torch") => t_string!(i18n, recommend.why_adafactor).to_string(),
        ("optim", _) => t_string!(i18n, recommend.why_optim).to_string(),
        ("precision", "bf16") => t_string!(i18n, recommend.why_bf16).to_string(),
        ("precision", _) => t_string!(i18n, recommend.why_precision).to_string(),
        ("freeze", "lora") => t_string!(i18n, recommend.why_lora).to_string(),
        ("freeze", "qlora") => t_string!(i18n, recommend.why_qlora).to_string(),
        ("freeze", _) => t_string!(i18n, recommend.why_freeze).to_string(),
        ("loss", "fused_linear") => t_string!(i18n, recommend.why_loss).to_string(),
        ("attn", "eager") => t_string!(i18n, recommend.why_eager).to_string(),
        ("attn", _) => t_string!(i18n, recommend.why_attn).to_string(),
        ("sample", _) => t_string!(i18n, recommend.why_sample).to_string(),
        ("strategy", _) => t_string!(i18n, recommend.why_strategy).to_string(),
        _ => String::new(),
    }
}
