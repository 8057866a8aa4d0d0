//! Canvas that redraws itself.

use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{HtmlCanvasElement, ResizeObserver};

use super::brush::Drawn;
use super::surface::Surface;
use crate::i18n::use_i18n;
use crate::shell::CurrentTheme;

/// A canvas that fills its frame at the screen's full resolution. It redraws when its size, the theme, the language or
/// an input of `draw` changes.
#[component]
pub fn Canvas(
    /// Draws on the cleared canvas.
    draw: impl Fn(Surface) -> Drawn + 'static,
) -> impl IntoView {
    let canvas = NodeRef::<html::Canvas>::new();
    let theme = CurrentTheme::get();
    let i18n = use_i18n();
    let size = RwSignal::new((0, 0));
    Effect::new(move || {
        if let Some(element) = canvas.get() {
            size.set(measure(&element));
            observe(element, size);
        }
    });
    Effect::new(move || {
        let Some(element) = canvas.get() else { return };
        let (width, height) = size.get();
        theme.read();
        i18n.locale();
        // Setting the size also clears the canvas.
        element.set_width(width);
        element.set_height(height);
        let drawn = Surface::canvas(&element, window().device_pixel_ratio()).map(&draw);
        // If drawing fails, the table behind the chart still shows the same figures.
        if let Some(Err(e)) = drawn {
            leptos::logging::error!("a chart could not be drawn: {e}");
        }
    });
    view! { <canvas class="canvas" node_ref=canvas aria-hidden="true"></canvas> }
}

/// Returns width and height in screen pixels. Forces a layout, so do not call it on every redraw.
fn measure(canvas: &HtmlCanvasElement) -> (u32, u32) {
    let (frame, ratio) = (canvas.get_bounding_client_rect(), window().device_pixel_ratio());
    let pixels = |css: f64| (css * ratio).round() as u32;
    (pixels(frame.width()), pixels(frame.height()))
}

/// Keeps `size` up to date until the component is removed.
fn observe(canvas: HtmlCanvasElement, size: RwSignal<(u32, u32)>) {
    let notify = {
        let canvas = canvas.clone();
        Closure::<dyn Fn()>::new(move || {
            let now = measure(&canvas);
            // The observer fires once more while the canvas is being removed.
            if size.try_get_untracked().is_some_and(|last| last != now) {
                size.try_set(now);
            }
        })
    };
    // Without an observer the chart keeps its first size.
    let Ok(observer) = ResizeObserver::new(notify.as_ref().unchecked_ref()) else {
        return;
    };
    observer.observe(&canvas);
    // The callback must live as long as its observer.
    let observing = StoredValue::new_local((observer, notify));
    on_cleanup(move || observing.with_value(|(observer, _)| observer.disconnect()));
}
