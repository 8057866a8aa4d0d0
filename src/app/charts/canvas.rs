use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{HtmlCanvasElement, ResizeObserver};

use crate::i18n::use_i18n;
use crate::shell::CurrentTheme;

/// A canvas that fills its frame and is as sharp as the screen: it has one pixel for each of the
/// screen's. It is drawn again when its size, the theme, the language or what `draw` reads changes.
#[component]
pub fn Canvas(
    /// Draws on the cleared canvas; the number is the screen's pixels per CSS pixel.
    draw: impl Fn(HtmlCanvasElement, f64) + 'static,
) -> impl IntoView {
    let canvas = NodeRef::<html::Canvas>::new();
    let theme = CurrentTheme::get();
    let i18n = use_i18n();
    let resized = RwSignal::new(());
    Effect::new(move || {
        if let Some(element) = canvas.get() {
            observe(&element, resized);
        }
    });
    Effect::new(move || {
        let Some(element) = canvas.get() else { return };
        resized.track();
        theme.read();
        i18n.get_locale();
        let ratio = window().device_pixel_ratio();
        fit(&element, ratio);
        draw(element, ratio);
    });
    view! { <canvas class="canvas" node_ref=canvas aria-hidden="true"></canvas> }
}

/// Gives the canvas a pixel for each of the screen's; this clears it.
fn fit(canvas: &HtmlCanvasElement, ratio: f64) {
    let frame = canvas.get_bounding_client_rect();
    canvas.set_width((frame.width() * ratio).round() as u32);
    canvas.set_height((frame.height() * ratio).round() as u32);
}

fn observe(canvas: &HtmlCanvasElement, resized: RwSignal<()>) {
    let notify = Closure::<dyn Fn()>::new(move || {
        // The observer reports once more while the canvas goes away.
        resized.try_set(());
    });
    // Without an observer the chart keeps the size at which it was drawn first.
    let Ok(observer) = ResizeObserver::new(notify.as_ref().unchecked_ref()) else {
        return;
    };
    observer.observe(canvas);
    let kept = StoredValue::new_local((observer, notify));
    on_cleanup(move || kept.with_value(|(observer, _)| observer.disconnect()));
}
