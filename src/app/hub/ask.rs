//! Asks a hub from the page: small files by name, without an account, bounded in bytes and time. What it answered is kept in
//! this browser.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use gloo_net::http::Request;
use gloo_timers::callback::Timeout;
use leptos::prelude::*;
use vramscope_hub::{Description, HubError, Inquiry, MOST_BYTES, Origin, Question, Repository, Response, Trouble};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, ReadableStreamDefaultReader, ReferrerPolicy, RequestCredentials};

use crate::shell::preferences;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Keys of local storage: answers of hubs, and whether hubs are asked without a press.
const KEPT: &str = "hub.kept";
const AT_ONCE: &str = "hub.at_once";

/// Most answers that are kept; the oldest goes.
const MOST: usize = 100;

thread_local! {
    /// Descriptions that were pasted on this visit.
    static PASTED: RefCell<Vec<Description>> = const { RefCell::new(Vec::new()) };
}

/// Address of the hub that this build may ask, as the page's head names it beside its policy; `None` for a build without one,
/// without a network, and for a page inside another one.
pub fn endpoint(is_embedded: bool) -> Option<String> {
    let meta = document().query_selector("meta[name=model-hub]").ok()??;
    let address = meta.get_attribute("content").filter(|address| !address.is_empty())?;
    (!is_embedded && window().navigator().on_line()).then_some(address)
}

/// Returns true if the person wants hubs to be asked at once.
pub fn is_at_once() -> bool {
    preferences::read(AT_ONCE).is_some()
}

/// Keeps whether hubs are asked at once.
pub fn ask_at_once(is_wanted: bool) {
    preferences::write(AT_ONCE, is_wanted.then_some("yes"));
}

/// Asks for what describes a repository, and keeps it.
///
/// # Errors
/// If the hub does not answer, or does not show the repository.
pub async fn ask(of: &Repository, endpoint: &str) -> Result<Description, HubError> {
    let mut inquiry = Inquiry::begin(of, endpoint, None);
    while let Some(question) = inquiry.question() {
        inquiry.hear(send(&question).await)?;
    }
    let description = inquiry.end();
    if description.is_of_use() {
        keep(&description);
    }
    Ok(description)
}

/// Takes a file that was pasted for a repository.
pub fn paste(of: &Repository, text: &str) {
    PASTED.with_borrow_mut(|all| {
        all.retain(|known| !is_of(known, of));
        all.push(Description::given(of, text));
    });
}

/// Description of a repository that needs no request: pasted by the person, or kept from an earlier answer.
pub fn kept(of: &Repository) -> Option<(Description, Origin)> {
    let pasted = PASTED.with_borrow(|all| all.iter().find(|known| is_of(known, of)).cloned());
    let given = pasted.map(|description| (description, Origin::Given));
    given.or_else(|| {
        let all = read_kept();
        let found = all.into_iter().find(|known| is_of(known, of));
        found.map(|description| (description, Origin::Cache))
    })
}

/// Forgets what was answered for a repository, so that it is asked again.
pub fn forget(of: &Repository) {
    PASTED.with_borrow_mut(|all| all.retain(|known| !is_of(known, of)));
    let mut all = read_kept();
    all.retain(|known| !is_of(known, of));
    write_kept(&all);
}

fn is_of(known: &Description, of: &Repository) -> bool {
    known.id == of.id && known.revision == of.revision
}

fn keep(description: &Description) {
    let mut all = read_kept();
    all.retain(|known| known.id != description.id || known.revision != description.revision);
    all.push(description.clone());
    let surplus = all.len().saturating_sub(MOST);
    all.drain(..surplus);
    write_kept(&all);
}

fn read_kept() -> Vec<Description> {
    let text = preferences::read(KEPT).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn write_kept(all: &[Description]) {
    let text = serde_json::to_string(all).ok().filter(|_| !all.is_empty());
    preferences::write(KEPT, text.as_deref());
}

/// Sends a question. The browser follows redirects, as far as the page's policy lets it: to the hub's own host.
async fn send(question: &Question) -> Result<Response, Trouble> {
    let failed = |_| Trouble::Other(String::new());
    let stop = AbortController::new().map_err(failed)?;
    let is_late = Rc::new(Cell::new(false));
    let timer = {
        let (stop, is_late) = (stop.clone(), is_late.clone());
        Timeout::new(PATIENCE.as_millis() as u32, move || {
            is_late.set(true);
            stop.abort();
        })
    };
    let answer = receive(question, &stop).await;
    drop(timer);
    match answer {
        Err(_) if is_late.get() => Err(Trouble::Late {
            seconds: PATIENCE.as_secs(),
        }),
        answer => answer,
    }
}

async fn receive(question: &Question, stop: &AbortController) -> Result<Response, Trouble> {
    let failed = || Trouble::Other(String::new());
    // Without a header of its own, so that the browser asks for no permission first.
    let request = Request::get(&question.address)
        .credentials(RequestCredentials::Omit)
        .referrer_policy(ReferrerPolicy::NoReferrer)
        .abort_signal(Some(&stop.signal()));
    let response = request.send().await.map_err(|_| failed())?;
    let header = |name: &str| response.headers().get(name);
    let mut bytes: Vec<u8> = Vec::new();
    if let Some(body) = response.body() {
        let reader: ReadableStreamDefaultReader = body.get_reader().dyn_into().map_err(|_| failed())?;
        loop {
            let part = JsFuture::from(reader.read()).await.map_err(|_| Trouble::BrokenOff)?;
            let field = |name: &str| js_sys::Reflect::get(&part, &JsValue::from_str(name)).ok();
            if field("done").is_none_or(|done| done.is_truthy()) {
                break;
            }
            let Some(part) = field("value").and_then(|value| value.dyn_into::<js_sys::Uint8Array>().ok()) else {
                return Err(failed());
            };
            if bytes.len() as u64 + u64::from(part.length()) > MOST_BYTES {
                stop.abort();
                return Err(Trouble::TooLarge);
            }
            bytes.extend(part.to_vec());
        }
    }
    Ok(Response {
        status: response.status(),
        error_code: header("x-error-code").unwrap_or_default(),
        retry_after: header("retry-after").and_then(|seconds| seconds.parse().ok()),
        etag: header("x-linked-etag").or_else(|| header("etag")),
        body: String::from_utf8(bytes).map_err(|_| Trouble::NotText)?,
        has_token: false,
    })
}
