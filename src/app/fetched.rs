//! Fetches the page's own files and its server's answers on demand.

use gloo_net::http::Request;
use leptos::prelude::document;

/// Response of the page's server.
#[derive(Debug, Default)]
pub struct Got {
    /// HTTP status; 0 if the server cannot be reached.
    pub status: u16,
    /// Body.
    pub text: String,
}

/// Requests an address relative to the page, with a bearer token unless `token` is empty.
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
        // The connection broke while the body was read.
        Err(_) => Got::default(),
    }
}

/// Returns the text of a file whose address `index.html` gives in the `data-NAME` attribute of the script that starts
/// the page; `None` if it cannot be fetched.
pub async fn published(name: &str) -> Option<String> {
    let script = document().query_selector("script[data-wasm]").ok()??;
    let got = get(&script.get_attribute(&format!("data-{name}"))?, "").await;
    (got.status == 200).then_some(got.text)
}
