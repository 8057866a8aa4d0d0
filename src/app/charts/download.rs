//! Files that the person saves: made here, handed to the browser, sent nowhere.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use leptos::prelude::{document, set_timeout, window};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, BlobPropertyBag, Element, HtmlAnchorElement, HtmlCanvasElement, Url};

use super::brush::{Drawn, FACES};
use super::palette::Palette;
use super::surface::Surface;
use super::svg;

/// Long enough for any browser to take the file.
const KEPT: Duration = Duration::from_secs(20);

/// Saves a text under a name.
pub fn save_text(text: &str, media_type: &str, name: &str) {
    let options = BlobPropertyBag::new();
    options.set_type(media_type);
    let parts = js_sys::Array::of1(&JsValue::from_str(text));
    if let Ok(blob) = Blob::new_with_str_sequence_and_options(&parts, &options) {
        save(&blob, name);
    }
}

/// Saves what `draw` draws as an SVG of the size that the chart has on the screen.
pub fn save_svg(chart: &Element, title: &str, draw: impl Fn(Surface) -> Drawn, name: &str) -> Drawn {
    let frame = chart.get_bounding_client_rect();
    let size = [frame.width(), frame.height()].map(|css| (css * svg::RATIO) as u32);
    let body = Rc::new(RefCell::new(String::new()));
    draw(Surface::svg((size[0], size[1]), svg::RATIO, body.clone()))?;
    let ground = svg::rgba(plotters_color(Palette::read()));
    let file = svg::file(
        frame.width().round(),
        frame.height().round(),
        title,
        &ground,
        FACES,
        &body.borrow(),
    );
    save_text(&file, "image/svg+xml", name);
    Ok(())
}

/// Saves what `draw` draws as a PNG with the screen's own pixels.
pub fn save_png(chart: &Element, draw: impl Fn(Surface) -> Drawn, name: String) -> Drawn {
    let frame = chart.get_bounding_client_rect();
    let ratio = window().device_pixel_ratio();
    let Some(canvas) = blank(frame.width() * ratio, frame.height() * ratio) else {
        return Ok(());
    };
    let Some(surface) = Surface::canvas(&canvas, ratio) else {
        return Ok(());
    };
    surface.fill(plotters_color(Palette::read()));
    draw(surface)?;
    let done = Closure::once_into_js(move |blob: Option<Blob>| {
        if let Some(blob) = blob {
            save(&blob, &name);
        }
    });
    // A canvas without pixels gives no blob; there is nothing to save then.
    let _ = canvas.to_blob(done.unchecked_ref());
    Ok(())
}

fn plotters_color(palette: Palette) -> plotters_backend::BackendColor {
    let plotters::style::RGBColor(r, g, b) = palette.surface;
    plotters_backend::BackendColor {
        alpha: 1.0,
        rgb: (r, g, b),
    }
}

fn blank(width: f64, height: f64) -> Option<HtmlCanvasElement> {
    let canvas: HtmlCanvasElement = document().create_element("canvas").ok()?.dyn_into().ok()?;
    canvas.set_width(width.round() as u32);
    canvas.set_height(height.round() as u32);
    Some(canvas)
}

fn save(blob: &Blob, name: &str) {
    let Ok(address) = Url::create_object_url_with_blob(blob) else {
        return;
    };
    let Some(link) = document()
        .create_element("a")
        .ok()
        .and_then(|link| link.dyn_into::<HtmlAnchorElement>().ok())
    else {
        return;
    };
    link.set_href(&address);
    link.set_download(name);
    link.click();
    set_timeout(
        move || {
            // It is an address of this page's own.
            Url::revoke_object_url(&address).ok();
        },
        KEPT,
    );
}
