//! Tensors live at an instant.

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::report::{Instant, LiveTensor};

use super::explain::Explained;
use crate::charts::kind_class;
use crate::i18n::{t, use_i18n};
use crate::part::part;
use crate::words;
use crate::worker::view::Live;

/// Lists the largest tensors live at an instant, with their place, size and reason.
#[component]
pub fn InstantList(live: RwSignal<Option<Live>>, pointed: RwSignal<Option<Instant>>) -> impl IntoView {
    let i18n = use_i18n();
    part(move || {
        let live = live.get()?;
        let (instant, total) = (live.instant, live.total);
        let tensors = words::tensors(i18n, live.count);
        let bytes = view! { <Explained quantity=Quantity::Live(instant) text=gib(total) /> };
        let title = match pointed.get() {
            Some(_) => t!(i18n, instant.here, tensors = tensors, bytes = bytes),
            None => t!(i18n, instant.at_peak, tensors = tensors, bytes = bytes),
        };
        let rows: Vec<_> = live
            .largest
            .into_iter()
            .enumerate()
            .map(|(place, tensor)| view! { <Row tensor quantity=Quantity::Tensor(instant, place) /> })
            .collect();
        let list = view! {
            <div class="instant" data-testid="instant">
                <h3>{title}</h3>
                <table>
                    <caption class="offscreen">{t!(i18n, instant.caption)}</caption>
                    <colgroup>
                        <col class="col-swatch" />
                        <col />
                        <col class="col-bytes" />
                    </colgroup>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        };
        Some(list.into_any())
    })
}

#[component]
fn Row(tensor: LiveTensor, quantity: Quantity) -> impl IntoView {
    let i18n = use_i18n();
    let kind = tensor.kind;
    let shape = tensor.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
    let what = format!("[{shape}] {} · {}", tensor.dtype.name(), words::why(i18n, tensor.why));
    view! {
        <tr data-testid="live-tensor">
            <td>
                <span class=format!("swatch {}", kind_class(kind)) title=words::kind(i18n, kind)></span>
            </td>
            <td class="tensor">
                <span class="tensor-name">
                    {tensor.name.into_owned()} " " <span class="tensor-layer">{tensor.layer}</span>
                </span>
                <span class="tensor-why">{what}</span>
            </td>
            <td class="tensor-bytes">
                <Explained quantity text=gib(tensor.bytes) />
            </td>
        </tr>
    }
}
