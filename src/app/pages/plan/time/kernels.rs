//! GPU time by kind of kernel.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_engine::format::grouped;

use super::explained::span;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::worker::timing::Timing;

/// Table of GPU time of a micro-batch and the update by kind of kernel.
#[component]
pub fn Kernels(timing: Arc<Timing>) -> impl IntoView {
    let i18n = use_i18n();
    let rows = timing.by_kernel.iter().map(|kernel| {
        view! {
            <tr>
                <th scope="row">{name(i18n, &kernel.name)}</th>
                <td>{grouped(kernel.launches)}</td>
                <td>{span(kernel.ms)}</td>
            </tr>
        }
    });
    view! {
        <details class="time-kernels" data-testid="time-kernels">
            <summary>{t!(i18n, time.kernels)}</summary>
            <table class="parts">
                <thead>
                    <tr>
                        <th scope="col">{t!(i18n, time.kernel)}</th>
                        <th scope="col">{t!(i18n, time.launches)}</th>
                        <th scope="col">{t!(i18n, time.amount)}</th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </details>
    }
}

/// Translates the engine's name of a kind of kernel.
fn name(i18n: Words, kind: &str) -> String {
    match kind {
        "matrix products" => t_string!(i18n, time.k_products),
        "fused attention" => t_string!(i18n, time.k_attention),
        "elementwise" => t_string!(i18n, time.k_elementwise),
        "copies" => t_string!(i18n, time.k_copies),
        "reductions" => t_string!(i18n, time.k_reductions),
        "layer norm" => t_string!(i18n, time.k_norm),
        "softmax" => t_string!(i18n, time.k_softmax),
        "top-k" => t_string!(i18n, time.k_topk),
        "loss" => t_string!(i18n, time.k_loss),
        "embedding" => t_string!(i18n, time.k_embedding),
        "convolution" => t_string!(i18n, time.k_convolution),
        "optimizer" => t_string!(i18n, time.k_optimizer),
        other => return other.to_owned(),
    }
    .to_owned()
}
