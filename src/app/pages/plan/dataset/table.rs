//! Table of a dataset's percentiles, each with the press that takes it.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_engine::format::grouped;
use vramscope_engine::setup::Setting;

use super::panel::{Facts, PERCENTS};
use crate::i18n::{t, t_string, use_i18n};

/// Lengths and sizes by percentile.
#[component]
pub fn Percentiles(facts: Arc<Facts>) -> impl IntoView {
    let i18n = use_i18n();
    let heads = PERCENTS.map(|(name, _)| view! { <th scope="col">{name}</th> });
    let lengths = PERCENTS.map(|(name, percent)| {
        let length = facts.lengths.percentile(percent);
        view! { <td data-testid="dataset-length" data-name=name data-value=length.to_string()>{grouped(length)}</td> }
    });
    let sizes = facts.sizes.as_ref().map(|all| {
        let cells = PERCENTS.map(|(_, percent)| view! { <td>{pixels(all, percent)}</td> });
        view! {
            <tr>
                <th scope="row">{t!(i18n, dataset.images)}</th>
                {cells}
            </tr>
        }
    });
    let buttons = PERCENTS.map(|(name, percent)| {
        let facts = facts.clone();
        let what = move || t_string!(i18n, dataset.use_one, what = name).to_string();
        view! {
            <td>
                <button type="button" class="tool" data-testid="dataset-use" data-name=name aria-label=what on:click=move |_| facts.take(percent)>
                    {t!(i18n, dataset.take)}
                </button>
            </td>
        }
    });
    view! {
        <table class="dataset-table">
            <thead>
                <tr>
                    <td></td>
                    {heads}
                </tr>
            </thead>
            <tbody>
                <tr>
                    <th scope="row">{t!(i18n, dataset.tokens)}</th>
                    {lengths}
                </tr>
                {sizes}
                <tr class="dataset-uses">
                    <td></td>
                    {buttons}
                </tr>
            </tbody>
        </table>
    }
}

/// Sizes of the images of the sample at a percentage of all, by their pixels.
fn pixels(sizes: &[Vec<[u32; 2]>], percent: f64) -> String {
    let images = at(sizes, percent);
    let one = |size: &[u32; 2]| format!("{} × {}", size[0], size[1]);
    match images {
        [] => "—".into(),
        [size] => one(size),
        [first, rest @ ..] => format!("{} + {}", one(first), rest.len()),
    }
}

fn at(sizes: &[Vec<[u32; 2]>], percent: f64) -> &[[u32; 2]] {
    let rank = (percent / 100.0 * sizes.len() as f64).ceil() as usize;
    sizes.get(rank.max(1) - 1).map_or(&[], Vec::as_slice)
}

impl Facts {
    /// Enters the length, and the images of the sample, at a percentage of all.
    fn take(&self, percent: f64) {
        let length = self.lengths.percentile(percent).max(1);
        self.store.edit(|draft| {
            draft.set(Setting::Lengths, "");
            draft.set(Setting::Seq, length.to_string());
            if let Some(sizes) = &self.sizes {
                let texts = at(sizes, percent).iter().map(|size| format!("{}x{}", size[0], size[1]));
                draft.set(Setting::ImageSizes, texts.collect::<Vec<_>>().join(", "));
            }
        });
    }
}
