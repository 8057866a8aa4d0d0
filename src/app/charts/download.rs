//! Saves files that are built in the browser; nothing is sent anywhere.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use gloo_file::{Blob, ObjectUrl};
use leptos::prelude::{document, window};
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, HtmlAnchorElement, HtmlCanvasElement};

use super::brush::{Drawn, FACES};
use super::palette::Palette;
use super::surface::Surface;
use super::svg;
use crate::events::after;

/// Lifetime of a file's object URL, long enough for any browser to read it.
const KEPT: Duration = Duration::from_secs(20);

/// Saves a text as a file.
pub fn save_text(text: &str, media_type: &str, name: &str) {
    save(Blob::new_with_options(text, Some(media_type)), name);
}

/// Saves the output of `draw` as an SVG of the chart's size on screen.
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

/// Saves the output of `draw` as a PNG at the screen's resolution.
pub fn save_png(chart: &Element, draw: impl Fn(Surface) -> Drawn, name: String) -> Drawn {
    let frame = chart.get_bounding_client_rect();
    let ratio = window().device_pixel_ratio();
    let Some(canvas) = blank(frame.width() * ratio, frame.height() * ratio) else {
        return Ok(());
    };
    let Some(mut surface) = Surface::canvas(&canvas, ratio) else {
        return Ok(());
    };
    surface.fill(plotters_color(Palette::read()));
    draw(surface)?;
    let done = Closure::once_into_js(move |blob: Option<web_sys::Blob>| {
        if let Some(blob) = blob {
            save(blob.into(), &name);
        }
    });
    // A canvas without pixels yields no blob, and there is nothing to save.
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

fn save(blob: Blob, name: &str) {
    let address = ObjectUrl::from(blob);
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
    // The object URL is revoked when this value is dropped.
    after(KEPT, move || drop(address));
}
