//! Models that are not built in: what a name stands for, and the offer to get its `config.json` from a hub. The page asks
//! nothing of a network unless a person presses the button, or has wished once to be asked no more.

mod ask;
mod find;

use leptos::prelude::*;
use leptos::task::spawn_local;
use vramscope_hub::{Found, HUGGING_FACE, HubError, Origin, Remark, Repository, known};
use wasm_bindgen::JsCast;
use web_sys::{HtmlInputElement, HtmlTextAreaElement};

use crate::hub_words::HubWords;
use crate::i18n::use_i18n;
use crate::models::Models;
use crate::part::part;
use crate::shell::Store;
use crate::state::Key;
use find::{Outcome, find};

/// A name whose model is looked for, for every component below.
#[derive(Clone, Copy)]
pub struct Sought {
    /// The name; empty if there is nothing to look for.
    pub name: Signal<String>,
    /// Name of the model that is used now, and true if it has a configuration that was found for it.
    pub current: Signal<(String, bool)>,
    /// True while the name is being typed.
    pub is_typed: Signal<bool>,
    /// Takes a model.
    pub take: Callback<Taken>,
}

/// A model to take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Its name.
    pub name: String,
    /// The configuration that was found for it; empty for a model that is built in.
    pub config: String,
    /// Reason that the figures are an upper bound, of a larger model; `None` if they are of the model itself.
    pub bound: Option<String>,
}

/// State of the part below the field of the name.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// Nothing.
    Quiet,
    /// The offer to ask a hub, with the name of a model that is alike.
    Offer(Repository, Option<&'static str>),
    /// A hub is being asked.
    Asking,
    /// There is no model, for this reason.
    Failed(HubError, Option<Repository>),
    /// A model is used.
    Used(Used),
}

/// The model that is used, with what a person has to know of it.
#[derive(Debug, Clone, PartialEq)]
struct Used {
    name: String,
    origin: Origin,
    remarks: Vec<Remark>,
}

#[derive(Clone, Copy)]
struct Looking {
    sought: Sought,
    models: Models,
    state: RwSignal<State>,
    /// Number of the name that is looked for; answers to earlier ones are dropped.
    number: StoredValue<u32>,
    is_embedded: bool,
}

impl Looking {
    fn endpoint(self) -> Option<String> {
        ask::endpoint(self.is_embedded)
    }

    /// Follows the name: to what is known without a network, and over it where that is wished for.
    fn follow(self, name: String) {
        let at_once = ask::is_at_once() && !self.sought.is_typed.get_untracked();
        self.look(name, self.endpoint().filter(|_| at_once));
    }

    fn look(self, name: String, endpoint: Option<String>) {
        let number = self.number.try_update_value(|number| {
            *number += 1;
            *number
        });
        if endpoint.is_some() {
            self.state.set(State::Asking);
        }
        spawn_local(async move {
            let outcome = find(&name, self.models, endpoint.as_deref()).await;
            if self.number.try_get_value() != number {
                return;
            }
            match outcome {
                Outcome::Found(found) => self.use_model(*found),
                Outcome::Ask { repository, alike } => drop(self.state.try_set(State::Offer(repository, alike))),
                Outcome::None(error, repository) => drop(self.state.try_set(State::Failed(error, repository))),
            }
        });
    }

    fn use_model(self, found: Found) {
        let is_built_in = found.catalogue == Some(found.name.as_str());
        let bound = found.bound().map(str::to_owned);
        self.state.try_set(State::Used(Used {
            name: found.name.clone(),
            origin: found.origin,
            remarks: found.remarks,
        }));
        self.sought.take.run(Taken {
            name: found.name,
            config: if is_built_in { String::new() } else { found.config },
            bound,
        });
    }

    /// Takes a name that was meant.
    fn choose(self, name: String) {
        self.sought.take.run(Taken {
            name,
            ..Taken::default()
        });
    }

    /// Shows the remarks on the model in use, from the lookup or from the configuration that a link carries.
    fn tell_of(self, (name, has_config): (String, bool)) {
        let is_told = self
            .state
            .with_untracked(|state| matches!(state, State::Used(used) if used.name == name));
        if is_told {
            return;
        }
        self.number.update_value(|number| *number += 1);
        let known = known(&name).filter(|known| known.is_certain);
        self.state.set(match has_config {
            true => State::Used(Used {
                remarks: known.map_or_else(Vec::new, |known| known.remarks),
                origin: Origin::Given,
                name,
            }),
            false => State::Quiet,
        });
    }
}

/// Part below the field of the name: the result of the lookup of [`Sought`], and the ways on.
#[component]
pub fn HubPart() -> impl IntoView {
    let i18n = use_i18n();
    let sought: Sought = expect_context();
    let looking = Looking {
        sought,
        models: Models::get(),
        state: RwSignal::new(State::Quiet),
        number: StoredValue::new(0),
        is_embedded: Store::get().has(Key::Embed),
    };
    Effect::new(move || {
        let (name, current) = (sought.name.get(), sought.current.get());
        // What has been typed is followed too, and again once it is whole.
        sought.is_typed.track();
        match name.is_empty() {
            true => looking.tell_of(current),
            false => looking.follow(name),
        }
    });
    part(move || {
        let words = HubWords::of(i18n.locale());
        Some(match looking.state.get() {
            State::Quiet => return None,
            State::Asking => {
                let host = looking.endpoint().map(|address| host_of(&address)).unwrap_or_default();
                view! { <p class="muted small" role="status">{words.say("asking", &[("host", &host)])}</p> }.into_any()
            }
            State::Offer(repository, alike) => {
                let near: Vec<String> = alike.into_iter().map(str::to_owned).collect();
                let text = words.say("not_built_in", &[("id", &repository.to_string())]);
                view! {
                    <div class="hub" data-testid="hub">
                        <p class="small">{text}</p>
                        <Near looking near />
                        <Get looking />
                        <ByHand looking repository />
                    </div>
                }
                .into_any()
            }
            State::Failed(error, repository) => {
                let near: Vec<String> = error.near().iter().map(|name| (*name).to_owned()).collect();
                let again = repository.map(|repository| {
                    view! {
                        <Get looking />
                        <ByHand looking repository />
                    }
                });
                view! {
                    <div class="hub" data-testid="hub">
                        <p class="field-error" role="alert" data-testid="hub-error" data-kind=error.word()>
                            {words.error(&error)}
                        </p>
                        <Near looking near />
                        {again}
                    </div>
                }
                .into_any()
            }
            State::Used(used) => view! { <Said looking used words /> }.into_any(),
        })
    })
}

/// Where the model that is used comes from, and what a person has to know of it.
#[component]
fn Said(looking: Looking, used: Used, words: &'static HubWords) -> impl IntoView {
    let id = ("id", used.name.as_str());
    let from = match &used.origin {
        Origin::Network(host) => Some(words.say("of_hub", &[id, ("host", host)])),
        Origin::Cache => Some(words.say("of_cache", &[id])),
        Origin::Given => used.remarks.is_empty().then(|| words.say("of_page", &[id])),
        _ => None,
    };
    let is_kept = matches!(used.origin, Origin::Cache);
    let again = (is_kept && looking.endpoint().is_some()).then(|| {
        let name = used.name.clone();
        let again = move |_| {
            if let Some(repository) = Repository::parse(&name) {
                ask::forget(&repository);
                looking.look(name.clone(), looking.endpoint());
            }
        };
        view! {
            <button type="button" class="tool" data-testid="hub-again" on:click=again>
                {words.word("again")}
            </button>
        }
    });
    let lines = from
        .into_iter()
        .chain(used.remarks.iter().map(|remark| words.remark(remark)));
    let lines: Vec<_> = lines.map(|line| view! { <p class="muted small">{line}</p> }).collect();
    view! {
        <div class="hub" role="status" data-testid="hub-said">
            {lines}
            {again}
        </div>
    }
}

/// Names that were probably meant.
#[component]
fn Near(looking: Looking, near: Vec<String>) -> impl IntoView {
    let words = HubWords::of(use_i18n().locale());
    (!near.is_empty()).then(|| {
        let buttons: Vec<_> = near
            .into_iter()
            .map(|name| {
                let (shown, of) = (name.clone(), name.clone());
                view! {
                    <button
                        type="button"
                        class="tool"
                        data-testid="hub-near"
                        data-name=of
                        on:click=move |_| looking.choose(name.clone())
                    >
                        {shown}
                    </button>
                }
            })
            .collect();
        view! {
            <div class="hub-near">
                <span class="muted small">{words.word("did_you_mean")}</span>
                {buttons}
            </div>
        }
    })
}

/// The button that asks a hub, if this page may.
#[component]
fn Get(looking: Looking) -> impl IntoView {
    let words = HubWords::of(use_i18n().locale());
    looking.endpoint().map(|endpoint| {
        let host = host_of(&endpoint);
        let label = match endpoint == HUGGING_FACE {
            true => words.word("get"),
            false => words.say("get_from", &[("host", &host)]),
        };
        let get = move |_| looking.look(looking.sought.name.get_untracked(), looking.endpoint());
        let remember = |event: leptos::ev::Event| {
            let input: HtmlInputElement = event_target(&event);
            ask::ask_at_once(input.checked());
        };
        view! {
            <button type="button" class="primary" data-testid="hub-get" on:click=get>
                {label}
            </button>
            <p class="muted small">{words.say("explain", &[("host", &host)])}</p>
            <label class="hub-remember small">
                <input
                    type="checkbox"
                    data-testid="hub-remember"
                    prop:checked=ask::is_at_once()
                    on:change=remember
                />
                {words.word("remember")}
            </label>
        }
    })
}

/// The address of the file, and a place to paste it.
#[component]
fn ByHand(looking: Looking, repository: Repository) -> impl IntoView {
    let words = HubWords::of(use_i18n().locale());
    let endpoint = looking.endpoint();
    let address = repository.file_address(endpoint.as_deref().unwrap_or(HUGGING_FACE), "config.json");
    let is_wrong = RwSignal::new(false);
    let label = words.say("paste", &[("id", &repository.to_string())]);
    let take = move |event: leptos::ev::Event| {
        let Some(area) = event
            .target()
            .and_then(|target| target.dyn_into::<HtmlTextAreaElement>().ok())
        else {
            return;
        };
        let text = area.value();
        let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
        is_wrong.set(!is_object && !text.trim().is_empty());
        if is_object {
            ask::paste(&repository, &text);
            looking.look(looking.sought.name.get_untracked(), None);
        }
    };
    let wrong = part(move || {
        is_wrong.get().then(|| {
            view! { <p class="field-error" role="alert" data-testid="hub-paste-wrong">{words.word("not_json")}</p> }
                .into_any()
        })
    });
    let (shown, to) = (address.clone(), address);
    view! {
        <p class="small">{words.word("by_hand")}</p>
        <p class="small hub-address">
            <a href=to target="_blank" rel="noreferrer" data-testid="hub-open">
                {shown}
            </a>
        </p>
        <textarea
            rows="3"
            spellcheck="false"
            autocomplete="off"
            data-testid="hub-paste"
            aria-label=label
            on:input=take
        ></textarea>
        {wrong}
    }
}

/// Host of an address, for messages.
fn host_of(address: &str) -> String {
    let bare = address.split_once("://").map_or(address, |(_, rest)| rest);
    bare.split('/').next().unwrap_or(bare).to_owned()
}
