//! Parts of the page that are fetched when they are first shown.
//!
//! A page names the part that it shows; the loader that `main` installs fetches it. So pages do not import what imports
//! them.

use std::pin::Pin;
use std::sync::OnceLock;

use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_split_helpers::SplitLoaderError;

use crate::i18n::{t, use_i18n};
use crate::part::part;
use crate::state::Route;

/// A part of a chunk, or an error where the chunk could not be fetched. The browser's console says why.
pub type Fetched<T> = Result<T, SplitLoaderError>;
/// A part that is being fetched.
pub type Fetch<T> = Pin<Box<dyn Future<Output = Fetched<T>>>>;
/// Makes a view of a chunk that has been fetched.
pub type MakeView = fn() -> AnyView;
/// Fetches the chunk of a part, unless it is there.
pub type Loader = fn(Lazy) -> Fetch<MakeView>;

static LOADER: OnceLock<Loader> = OnceLock::new();

/// Sets what fetches the parts. Later calls change nothing.
pub fn install(loader: Loader) {
    LOADER.set(loader).ok();
}

/// A page, or a part of one, that has a chunk of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lazy {
    /// The page of a route.
    Page(Route),
    /// Reason why there is no run.
    Refused,
    /// Setups side by side.
    Compare,
    /// Explanation of a number.
    Explanation,
    /// Files that start a run.
    Launch,
    /// Setups that this browser keeps.
    Setups,
    /// Setups that fit.
    MakeFit,
    /// The setup on screen as a training tool's file.
    LaunchFile,
    /// Need of memory against one entry of the setup.
    Sweep,
    /// Time of a step.
    Time,
    /// Allocations of a step.
    Timeline,
    /// Lengths and sizes of a dataset's samples.
    Dataset,
    /// Measured steps of the model's family.
    Exactness,
    /// Controls of several GPUs.
    Sharing,
    /// Note on the GPU, of several, whose figures are shown.
    OfOne,
    /// The setup on other numbers of GPUs.
    Numbers,
    /// Memory before and beside the steps.
    Around,
    /// A model that is not built in.
    Hub,
    /// What the run costs on each card.
    Cost,
    /// Names of settings, pages and numbers.
    Find,
}

/// A page, as soon as its chunk is there.
#[component]
pub fn LazyPage(of: Route) -> impl IntoView {
    let i18n = use_i18n();
    let (fetched, fetch) = follow(Lazy::Page(of));
    part(move || {
        Some(match fetched.get() {
            None => view! {
                <main class="results muted" id="results" tabindex="-1" aria-busy="true">
                    {t!(i18n, page.loading)}
                </main>
            }
            .into_any(),
            Some(Some(make)) => make(),
            Some(None) => view! {
                <main class="results" id="results" tabindex="-1">
                    {unloaded(fetch)}
                </main>
            }
            .into_any(),
        })
    })
}

/// A part of a page, as soon as its chunk is there; nothing before.
#[component]
pub fn LazyPart(of: Lazy) -> impl IntoView {
    let (fetched, fetch) = follow(of);
    part(move || Some(fetched.get()?.map_or_else(|| unloaded(fetch), |make| make())))
}

/// Fetches a part now, and again when the callback runs. `Some(None)` is a part that could not be fetched.
fn follow(of: Lazy) -> (ReadSignal<Option<Option<MakeView>>>, Callback<()>) {
    let (fetched, set) = signal(None);
    let fetch = Callback::new(move |()| {
        set.set(None);
        spawn_local(async move {
            let made = match LOADER.get() {
                Some(loader) => loader(of).await.ok(),
                None => None,
            };
            // The person may have gone elsewhere meanwhile.
            set.try_set(Some(made));
        });
    });
    fetch.run(());
    (fetched, fetch)
}

fn unloaded(fetch: Callback<()>) -> AnyView {
    let i18n = use_i18n();
    view! {
        <section class="card refusal" role="alert" data-testid="unloaded">
            <p>{t!(i18n, page.unloaded)}</p>
            <button type="button" class="tool" data-testid="load-again" on:click=move |_| fetch.run(())>
                {t!(i18n, page.load_again)}
            </button>
        </section>
    }
    .into_any()
}
