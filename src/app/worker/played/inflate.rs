//! Unpacks a file to the lines of a recording, in the browser.

use std::sync::Arc;

use js_sys::Uint8Array;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::worker::recorded::{Fault, MOST_UNPACKED, Unpacked};

#[wasm_bindgen]
extern "C" {
    /// Unpacks gzip up to the point where it is cut; nothing if that is more than `most` bytes. Defined in
    /// `src/app/js/chunks.js`.
    #[wasm_bindgen(js_namespace = vramscope, js_name = unpack)]
    fn inflate(bytes: &Uint8Array, most: f64) -> js_sys::Promise;
}

/// Returns the lines of a recording.
pub async fn unpack(packed: Arc<Vec<u8>>) -> Unpacked {
    let mut lines = match packed.starts_with(&[0x1f, 0x8b]) {
        true => {
            let inflated = JsFuture::from(inflate(&Uint8Array::from(&packed[..]), MOST_UNPACKED as f64)).await;
            let inflated: Option<Uint8Array> = inflated
                .ok()
                .filter(|bytes: &JsValue| !bytes.is_undefined())
                .and_then(|bytes| bytes.dyn_into().ok());
            inflated.ok_or(TOO_LARGE)?.to_vec()
        }
        false => packed.to_vec(),
    };
    if vramscope_gallery::is_packed(&lines) {
        lines = vramscope_gallery::unpack(&lines, MOST_UNPACKED).map_err(|damaged| match damaged {
            vramscope_gallery::Damaged::TooLarge => TOO_LARGE,
            other => Fault::Line(other.to_string()),
        })?;
    }
    // A line that is cut says less than the end that is missing.
    if !lines.ends_with(b"}") {
        let end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        lines.truncate(end);
    }
    Ok(lines)
}

const TOO_LARGE: Fault = Fault::TooLarge((MOST_UNPACKED >> 20) as u64);
