//! Bottlenecks of a step.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_time::{Bottleneck, Resource};

use super::explained::{Explained, Number, span};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::worker::timing::Timing;

/// Lists the step's bottlenecks, with the step's time if each were removed.
#[component]
pub fn Waits(timing: Arc<Timing>) -> impl IntoView {
    waits(use_i18n(), &timing)
}

fn waits(i18n: Words, timing: &Timing) -> Option<AnyView> {
    let (first, others) = timing.bottlenecks.as_ref()?.split_first()?;
    let (what, remedy) = (name(i18n, first.resource), remedy(i18n, first.resource));
    let title = t_string!(i18n, time.bottleneck, what = what);
    let (number, times) = (number(i18n, *first), format!("{:.2}", first.speedup));
    let others = others.iter().map(|other| {
        let label = t_string!(i18n, time.one_without, what = name(i18n, other.resource));
        view! {
            <li>
                <span class="legend-name">{label}</span>
                <span class="legend-value">{self::number(i18n, *other)}</span>
            </li>
        }
    });
    let waits = view! {
        <div class="time-waits" data-testid="bottleneck" data-value=key(first.resource)>
            <h3>{title}</h3>
            <p>{t!(i18n, time.without, time = number, times = times, remedy = remedy)}</p>
            <ul class="legend">{others.collect_view()}</ul>
        </div>
    };
    Some(waits.into_any())
}

/// Time of the step without a bottleneck, with its derivation.
fn number(i18n: Words, of: Bottleneck) -> AnyView {
    let explained = Explained {
        name: t_string!(i18n, time.one_without, what = name(i18n, of.resource)),
        result: span(of.step_ms_without),
        formula: t_string!(i18n, time.f_without).to_owned(),
        numbers: format!("{} × {:.3}", span(of.step_ms_without), of.speedup),
        source: t_string!(i18n, time.s_lines).to_owned(),
    };
    view! { <Number explained value=of.step_ms_without /> }.into_any()
}

const fn key(resource: Resource) -> &'static str {
    match resource {
        Resource::Data => "data",
        Resource::Communication => "communication",
        Resource::Host => "host",
        Resource::Arithmetic => "arithmetic",
        Resource::Memory => "memory",
    }
}

fn name(i18n: Words, resource: Resource) -> &'static str {
    match resource {
        Resource::Data => t_string!(i18n, time.data_wait),
        Resource::Communication => t_string!(i18n, time.communication),
        Resource::Host => t_string!(i18n, time.host_wait),
        Resource::Arithmetic => t_string!(i18n, time.arithmetic),
        Resource::Memory => t_string!(i18n, time.memory),
    }
}

fn remedy(i18n: Words, resource: Resource) -> &'static str {
    match resource {
        Resource::Data => t_string!(i18n, time.help_data_wait),
        Resource::Communication => t_string!(i18n, time.help_communication),
        Resource::Host => t_string!(i18n, time.help_host_wait),
        Resource::Arithmetic => t_string!(i18n, time.help_arithmetic),
        Resource::Memory => t_string!(i18n, time.help_memory),
    }
}
