//! Links to the sections of the results, and the verdict that stays in sight while one scrolls.

use leptos::html;
use leptos::prelude::*;

use super::in_sight::while_in_sight;
use super::verdict::{Icon, headline};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::{part, text};
use crate::simulation::Simulation;

/// A section of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Peaks of the phases, and exact figures.
    Figures,
    /// Time of a step.
    Time,
    /// Single changes.
    WhatIf,
    /// Allocations of a step.
    Timeline,
    /// Memory at the peak.
    Breakdown,
    /// Need of memory against one entry.
    Sweep,
    /// What the run costs on each card.
    Cost,
    /// Memory before and beside the steps.
    Around,
    /// The command, and files.
    Export,
}

impl Section {
    /// All sections, in the order of the page.
    pub const ALL: [Self; 9] = [
        Self::Figures,
        Self::Time,
        Self::WhatIf,
        Self::Timeline,
        Self::Breakdown,
        Self::Sweep,
        Self::Cost,
        Self::Around,
        Self::Export,
    ];

    /// Returns true if the section is shown for training alone.
    pub const fn is_of_training(self) -> bool {
        matches!(self, Self::WhatIf | Self::Sweep | Self::Cost | Self::Around)
    }

    /// Id of its element.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Figures => "section-figures",
            Self::Time => "section-time",
            Self::WhatIf => "section-what-if",
            Self::Timeline => "section-timeline",
            Self::Breakdown => "section-breakdown",
            Self::Sweep => "section-sweep",
            Self::Cost => "section-cost",
            Self::Around => "section-around",
            Self::Export => "section-export",
        }
    }

    /// Its name, as the list of sections has it.
    pub fn name(self, i18n: Words) -> &'static str {
        match self {
            Self::Figures => t_string!(i18n, plan.section_figures),
            Self::Time => t_string!(i18n, plan.section_time),
            Self::WhatIf => t_string!(i18n, what_if.title),
            Self::Timeline => t_string!(i18n, plan.section_timeline),
            Self::Breakdown => t_string!(i18n, plan.section_breakdown),
            Self::Sweep => t_string!(i18n, plan.section_sweep),
            Self::Cost => t_string!(i18n, plan.section_cost),
            Self::Around => t_string!(i18n, around.title),
            Self::Export => t_string!(i18n, export.title),
        }
    }
}

/// Links to the sections, which scroll there: a plain link would replace the fragment, which holds the state.
#[component]
pub fn Contents(of: Vec<Section>) -> impl IntoView {
    let i18n = use_i18n();
    let link = |section: Section| {
        let go = move |_| {
            if let Some(element) = document().get_element_by_id(section.id()) {
                element.scroll_into_view();
            }
        };
        view! {
            <button type="button" data-testid=format!("to-{}", section.id()) on:click=go>
                {text(move || section.name(i18n).to_owned())}
            </button>
        }
    };
    let links = of.into_iter().map(link).collect_view();
    view! {
        <nav class="contents" aria-label=t!(i18n, plan.contents)>
            {links}
        </nav>
    }
}

/// The verdict in one line at the window's top, while the row that tells it is out of sight.
#[component]
pub fn StickyVerdict(
    /// The row that tells the verdict.
    of: NodeRef<html::Div>,
) -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let seen = while_in_sight(of);
    let line = part(move || {
        // Nobody sees it while the row is there, and each entry would draw it anew.
        if seen.get() {
            return None;
        }
        let card = simulation.card()?.ok()?;
        let verdict = card.fit.verdict;
        Some(
            view! {
                <span class=format!("sticky-line {}", card.colour(verdict))>
                    <Icon verdict />
                    <strong class="verdict-words">{headline(i18n, &card)}</strong>
                    <span class="verdict-detail">{super::verdict::margin(i18n, &card.fit)}</span>
                </span>
            }
            .into_any(),
        )
    });
    // Screen readers have the verdict already, at its place.
    view! {
        <div class="sticky-verdict" class:sticky-out=move || !seen.get() aria-hidden="true" data-testid="sticky-verdict">
            {line}
        </div>
    }
}
