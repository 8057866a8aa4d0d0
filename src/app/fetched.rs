//! What the page asks for once it needs it: files of its own that lie beside it, and answers of its host.

use gloo_net::http::Request;
use leptos::prelude::document;

/// An answer of the page's host.
#[derive(Debug, Default)]
pub struct Got {
    /// The status; 0 where the host cannot be reached.
    pub status: u16,
    /// The body.
    pub text: String,
}

/// Asks for what is at an address relative to the page, with a token where there is one.
pub async fn get(address: &str, token: &str) -> Got {
    let mut request = Request::get(address);
    if !token.is_empty() {
        request = request.header("authorization", &format!("Bearer {token}"));
    }
    let Ok(response) = request.send().await else {
        return Got::default();
    };
    match response.text().await {
        Ok(text) => Got {
            status: response.status(),
            text,
        },
        // It broke off.
        Err(_) => Got::default(),
    }
}

/// The text of a file that `index.html` names in the data of the script that starts the page, by `data-NAME`; `None`
/// where it cannot be had.
pub async fn published(name: &str) -> Option<String> {
    let script = document().query_selector("script[data-wasm]").ok()??;
    let got = get(&script.get_attribute(&format!("data-{name}"))?, "").await;
    (got.status == 200).then_some(got.text)
}
