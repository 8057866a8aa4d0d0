//! Measured steps of a family beside their predictions.

use std::collections::BTreeMap;
use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use vramscope_engine::Model;
use vramscope_engine::order::sort_by;

use super::MeasuredSteps;
use crate::fetched::published;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::simulation::Simulation;

/// Error in percent that is shown as none.
const NONE: f64 = 0.005;

/// A measured step.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    /// Catalogue name of its model, or `model_type` of its configuration.
    model: String,
    settings: String,
    measured: String,
    /// Error of the predicted peak, as the table writes it.
    error: String,
}

impl Step {
    fn read(line: &str) -> Option<Self> {
        let mut cells = line.split('\t').map(str::to_owned);
        let mut next = || cells.next();
        Some(Self {
            model: next()?,
            settings: next()?,
            measured: next()?,
            error: next()?,
        })
    }

    /// Error in percent, without its sign.
    fn off(&self) -> f64 {
        let number = self.error.trim_matches(['%', '+', '-']);
        number.parse().unwrap_or(f64::INFINITY)
    }
}

/// Says how exact the predictions for this model's family are, and lists its measured steps.
#[component]
pub fn ExactnessPanel() -> impl IntoView {
    let i18n = use_i18n();
    let model = Simulation::get().model;
    // `None` while they are fetched.
    let all = RwSignal::new(None::<Option<Arc<Vec<Step>>>>);
    spawn_local(async move {
        let text = published("exactness").await;
        let steps = text.map(|text| Arc::new(text.lines().filter_map(Step::read).collect()));
        // The page may have been left.
        all.try_set(Some(steps));
    });
    // Other settings of a model have the same steps.
    let family = Memo::new(move |_| model.with(|model| model.as_ref().map(|model| model.model_type)));
    let steps = Memo::new(move |_| {
        let (all, family) = (all.get()??, family.get()?);
        Some(of_family(&all, family))
    });
    let MeasuredSteps(badge) = expect_context();
    Effect::new(move || {
        let count = steps.with(|steps| {
            let steps = steps.as_ref()?;
            Some((steps.len(), steps.iter().filter(|step| step.off() < NONE).count()))
        });
        badge.set(count);
    });
    part(move || {
        let view = match (all.get(), steps.get()) {
            (Some(None), _) => view! { <p class="muted small">{t!(i18n, exactness.lost)}</p> }.into_any(),
            (_, None) => view! { <p class="muted small">{t!(i18n, exactness.waiting)}</p> }.into_any(),
            (_, Some(steps)) => summary_and_rows(i18n, steps),
        };
        Some(view)
    })
}

/// Steps of a family, the farthest off first.
fn of_family(all: &[Step], family: &'static str) -> Vec<Step> {
    let mut families: BTreeMap<&str, bool> = BTreeMap::new();
    let mut steps = Vec::new();
    for step in all {
        let is_of = families.entry(&step.model).or_insert_with(|| {
            let known = || Model::from_catalogue(&step.model).ok().map(|model| model.model_type);
            step.model == family || known() == Some(family)
        });
        if *is_of {
            steps.push(step.clone());
        }
    }
    sort_by(&mut steps, |a, b| b.off().total_cmp(&a.off()));
    steps
}

fn summary_and_rows(i18n: Words, steps: Vec<Step>) -> AnyView {
    let Some(worst) = steps.first() else {
        return view! { <p class="small" data-testid="exactness-none">{t!(i18n, exactness.none)}</p> }.into_any();
    };
    let count = steps.len().to_string();
    let exact = steps.iter().filter(|step| step.off() < NONE).count().to_string();
    let worst = format!("{}%", worst.off());
    let rows = t_string!(i18n, exactness.rows, steps = count.clone());
    let words = t_string!(
        i18n,
        exactness.told,
        steps = count.clone(),
        exact = exact,
        worst = worst
    );
    let lines = steps.into_iter().map(|step| {
        view! {
            <tr>
                <th scope="row">{step.model} " " <span class="muted">{step.settings}</span></th>
                <td>{step.measured}</td>
                <td>{step.error}</td>
            </tr>
        }
    });
    view! {
        <p class="small" data-testid="exactness-told" data-value=count>{words}</p>
        <p class="muted small">{t!(i18n, exactness.estimate)}</p>
        <details class="finer">
            <summary>{rows}</summary>
            <div class="exactness-rows" tabindex="0" role="region" aria-label=t!(i18n, exactness.how)>
                <table>
                    <thead>
                        <tr>
                            <th scope="col">{t!(i18n, exactness.case)}</th>
                            <th scope="col">{t!(i18n, exactness.measured)}</th>
                            <th scope="col">{t!(i18n, exactness.off)}</th>
                        </tr>
                    </thead>
                    <tbody>{lines.collect_view()}</tbody>
                </table>
            </div>
        </details>
    }
    .into_any()
}
