//! Messages as bytes: far smaller and faster than the browser's copies of objects.

use js_sys::{ArrayBuffer, Uint8Array};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};

/// A message as a buffer that changes hands.
pub fn encode(message: &impl Serialize) -> ArrayBuffer {
    // Plain data into a growing buffer: nothing can fail.
    let bytes = postcard::to_allocvec(message).unwrap_or_default();
    Uint8Array::from(&bytes[..]).buffer()
}

/// The message of a buffer; both sides are one program, so any other buffer is a fault.
pub fn decode<T: DeserializeOwned>(data: JsValue) -> T {
    let bytes = data
        .dyn_into::<ArrayBuffer>()
        .map(|buffer| Uint8Array::new(&buffer).to_vec())
        .unwrap_or_default();
    match postcard::from_bytes(&bytes) {
        Ok(message) => message,
        Err(_) => panic!("a message of {} bytes cannot be read", bytes.len()),
    }
}
