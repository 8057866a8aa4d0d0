//! `cargo xtask measure`: measures a visit to the built page in Chromium, over the loopback interface and over a slow
//! network, and how recordings open. Prints tables; a KB is 1000 bytes. `cargo run -p vramscope-tests --example measure --
//! gallery` measures only the recordings; `-- paste` the time from pasting a log of 1 MB to the first finding; with `beside
//! DIST`, first visits beside those of another built page; with a file name, how the page of diagnoses reads that file;
//! `large.py` creates large ones.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

#[path = "../browser/chromedriver.rs"]
mod chromedriver;
mod gallery;
mod opened;
#[path = "../browser/page.rs"]
#[allow(dead_code, reason = "the browser tests use all of it")]
mod page;
mod pasted;
mod quantiles;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use thirtyfour::error::WebDriverResult;
use xtask::static_server::{SentFile, Server};

use page::{Page, with_browser};
use quantiles::Quantiles;

/// The page state whose changes are timed.
const SETUP: &str = "#/?model=llava-1.5-7b&gpu=H200";
/// Cards for which searches are timed, each over 100,800 setups: two images of 1280 × 720, an effective batch of 64,
/// all settings free.
const SEARCHES: [&str; 2] = ["RTX 4090", "A100 80GB"];
/// Number of rounds of changes that are timed.
const ROUNDS: usize = 8;
/// Number of first visits that are timed beside those to another page.
const PAIRS: usize = 15;
/// Number of browsers for each of two pages, in each of which every change is timed once.
const CHANGED: usize = 3;
/// Number of first visits that are timed, each from a new origin.
const VISITS: usize = 7;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = page::built();
    let asked = std::env::args_os().nth(1);
    if asked.as_deref().is_some_and(|asked| asked == "gallery") {
        let server = Server::start(folder, 0).expect("a port is free");
        return with_browser(&server.origin(), async |page| {
            page.keep_nothing().await?;
            gallery::print(page).await
        })
        .await;
    }
    if asked.as_deref().is_some_and(|asked| asked == "beside") {
        let other = std::env::args_os().nth(2).expect("usage: measure beside DIST");
        return beside(&folder, Path::new(&other)).await;
    }
    if asked.as_deref().is_some_and(|asked| asked == "paste") {
        return pasted::print(&folder).await;
    }
    if let Some(file) = asked {
        let file = std::path::absolute(file).expect("a file's name");
        return opened::print(&file, &folder).await;
    }
    let visits = visits(&folder).await;
    let server = Server::start(folder.clone(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.keep_nothing().await?;
        page.go(SETUP).await?;
        page.find_at(".what-if-group").await?;
        print_visit(server.sent(), &folder);
        println!("\n{:<34}{:>9}{:>9}{:>9}", "ms", "median", "p95", "most");
        println!("{:<34}{}", "usable, first visit", Quantiles::of(&visits.first));
        println!("{:<34}{}", "  at 10 Mbit/s and 40 ms", Quantiles::of(&visits.slow));
        println!("{:<34}{}", "usable, kept on the machine", Quantiles::of(&visits.again));
        print_all_changes(page).await?;
        for card in SEARCHES {
            let [searched, told] = search(page, card).await?;
            println!("{:<34}{searched:>9.0}", format!("100,800 setups searched, {card}"));
            println!("{:<34}{told:>9.0}", "  and the plan told");
        }
        gallery::print(page).await
    })
    .await;
}

/// Milliseconds until the page is usable, of each visit.
#[derive(Default)]
struct Visits {
    first: Vec<f64>,
    again: Vec<f64>,
    /// First visits over a slow network.
    slow: Vec<f64>,
}

/// Times first visits to this page and to another in turn, then changes of settings, and prints their ratios pair by pair.
async fn beside(folder: &Path, other: &Path) {
    println!("\n{:<34}{:>9}{:>9}{:>9}", "ms", "median", "p95", "most");
    let mut visits = Vec::new();
    for _ in 0..PAIRS {
        visits.push([first_visit(folder).await, first_visit(other).await]);
    }
    print_pairs("usable, first visit", &visits);
    let (mut typed, mut chosen) = (Vec::new(), Vec::new());
    for _ in 0..CHANGED {
        let ([own_typed, own_chosen], [typed_there, chosen_there]) = (changed(folder).await, changed(other).await);
        typed.extend(own_typed.into_iter().zip(typed_there).map(<[f64; 2]>::from));
        chosen.extend(own_chosen.into_iter().zip(chosen_there).map(<[f64; 2]>::from));
    }
    print_pairs("typed to painted frame", &typed);
    print_pairs("stepped or chosen to painted frame", &chosen);
}

fn print_pairs(what: &str, pairs: &[[f64; 2]]) {
    let of = |value: fn(&[f64; 2]) -> f64| Quantiles::of(&pairs.iter().map(value).collect::<Vec<_>>());
    println!("{what:<34}{}", of(|[own, _]| *own));
    println!("{:<34}{}", "  the other page", of(|[_, other]| *other));
    println!(
        "{:<34}{}",
        "  ratio of pairs, %",
        of(|[own, other]| 100.0 * own / other)
    );
}

/// Milliseconds from each typed number, and from each stepped or chosen value, to the painted frame.
async fn changed(folder: &Path) -> [Vec<f64>; 2] {
    let server = Server::start(folder.to_owned(), 0).expect("a port is free");
    let mut taken = [Vec::new(), Vec::new()];
    with_browser(&server.origin(), async |page| {
        page.keep_nothing().await?;
        page.keep_nothing().await?;
        for (taken, (list, how)) in taken.iter_mut().zip([(numbers(), "typed"), (list(), "chosen")]) {
            page.go(SETUP).await?;
            taken.extend(changes(page, list, how).await?.iter().map(|change| change.3));
        }
        Ok(())
    })
    .await;
    taken
}

/// Milliseconds until the page of a new origin is usable.
async fn first_visit(folder: &Path) -> f64 {
    let server = Server::start(folder.to_owned(), 0).expect("a port is free");
    let mut taken = f64::NAN;
    with_browser(&server.origin(), async |page| {
        taken = usable(page).await?;
        Ok(())
    })
    .await;
    taken
}

async fn visits(folder: &Path) -> Visits {
    let mut visits = Visits::default();
    for _ in 0..VISITS {
        let server = Server::start(folder.to_owned(), 0).expect("a port is free");
        with_browser(&server.origin(), async |page| {
            slow_network(page).await?;
            visits.slow.push(usable(page).await?);
            Ok(())
        })
        .await;
        let server = Server::start(folder.to_owned(), 0).expect("a port is free");
        with_browser(&server.origin(), async |page| {
            visits.first.push(usable(page).await?);
            kept(page).await?;
            visits.again.push(usable(page).await?);
            Ok(())
        })
        .await;
    }
    visits
}

/// Milliseconds from the start of navigation to the first painted result.
async fn usable(page: &Page) -> WebDriverResult<f64> {
    let source = include_str!("usable.js");
    page.before_load(source).await?;
    page.go(SETUP).await?;
    let time = page.script::<Option<f64>>("return globalThis.usableMs ?? null");
    time.named("the first result").present().await
}

/// Waits until the service worker has cached the page.
async fn kept(page: &Page) -> WebDriverResult<bool> {
    let script = "return Boolean(navigator.serviceWorker.controller)";
    page.script::<bool>(script).named("the page is kept").is(true).await
}

/// Limits the page's network to 10 Mbit/s with 40 ms of latency. Workers fetch a few small files at full speed.
async fn slow_network(page: &Page) -> WebDriverResult<()> {
    let bytes_per_second = 10e6 / 8.0;
    let conditions = json!({
        "offline": false,
        "latency": 40,
        "downloadThroughput": bytes_per_second,
        "uploadThroughput": bytes_per_second,
    });
    page.devtools("Network.enable", json!({})).await?;
    page.devtools("Network.emulateNetworkConditions", conditions).await
}

/// Prints the files of a visit with their transferred and actual sizes, the largest first.
fn print_visit(sent: Vec<SentFile>, folder: &Path) {
    println!("{:<48}{:>9}{:>9}", "first visit, KB", "as sent", "raw");
    let mut files = BTreeMap::<String, u64>::new();
    for (path, bytes) in sent {
        *files.entry(path).or_default() += bytes;
    }
    let name = |path: &str| {
        path.strip_prefix('/')
            .filter(|name| !name.is_empty())
            .unwrap_or("index.html")
            .to_owned()
    };
    let raw = |path: &str| std::fs::metadata(folder.join(name(path))).map_or(0, |file| file.len());
    let mut files: Vec<_> = files
        .iter()
        .map(|(path, sent)| (name(path), *sent, raw(path)))
        .collect();
    files.sort_by_key(|(_, sent, _)| std::cmp::Reverse(*sent));
    let all = files
        .iter()
        .fold((0, 0), |(sent, raw), file| (sent + file.1, raw + file.2));
    for (name, sent, raw) in files.into_iter().chain([("in all".to_owned(), all.0, all.1)]) {
        println!("{name:<48}{:>9.1}{:>9.1}", sent as f64 / 1e3, raw as f64 / 1e3);
    }
}

/// A change: the entered value, and the milliseconds until its result was painted.
#[derive(Debug, Deserialize)]
struct Change(
    String,
    #[allow(dead_code, reason = "shown where a change fails")] String,
    f64,
    f64,
);

/// Answer of a script that times a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Timed<T> {
    /// What was timed.
    All(Vec<T>),
    /// What failed, and why.
    Failed(String),
}

impl<T> Timed<T> {
    /// What was timed.
    ///
    /// # Panics
    /// If something failed.
    pub fn expect_all(self) -> Vec<T> {
        match self {
            Self::All(all) => all,
            Self::Failed(message) => panic!("{message}"),
        }
    }
}

async fn changes(page: &Page, list: Vec<(&str, String)>, how: &str) -> WebDriverResult<Vec<Change>> {
    page.let_scripts_take(Duration::from_secs(120)).await?;
    let script = include_str!("changes.js");
    let answer: Timed<Change> = page.promise(script, vec![json!(list), json!(how)]).await?;
    Ok(answer.expect_all())
}

/// Changes of several settings; each gives a different run than the one before.
fn list() -> Vec<(&'static str, String)> {
    let round = |n: usize| {
        [
            ("batch", (n + 2).to_string()),
            ("seq", (2560 + 256 * n).to_string()),
            ("optim", ["sgd", "adamw_fused"][n % 2].to_owned()),
            ("ckpt", "full".to_owned()),
            ("images", (n % 3 + 2).to_string()),
            ("precision", ["amp-bf16", "bf16"][n % 2].to_owned()),
            ("freeze", "lora".to_owned()),
            ("ckpt", "none".to_owned()),
            ("freeze", "none".to_owned()),
        ]
    };
    (0..ROUNDS).flat_map(round).collect()
}

/// Numbers typed into several inputs; each gives a different run than the one before.
fn numbers() -> Vec<(&'static str, String)> {
    let round = |n: usize| {
        [
            ("batch", (n + 2).to_string()),
            ("seq", (2560 + 256 * n).to_string()),
            ("images", (n % 3 + 2).to_string()),
            ("batch", (n + 12).to_string()),
            ("seq", (2400 + n).to_string()),
        ]
    };
    (0..ROUNDS).flat_map(round).collect()
}

/// Milliseconds of a search, and of the whole plan.
async fn search(page: &Page, card: &str) -> WebDriverResult<[f64; 2]> {
    let open = "precision,optim,ckpt,attn,freeze,loss,batch,resolution,images,offload";
    let question = "model=qwen2.5-vl-7b&seq=3072&images=2&image_sizes=720x1280&effective=64";
    page.go(&format!("#/recommend?{question}&gpu={card}&open={open}"))
        .await?;
    page.find("plan-go").await?;
    page.let_scripts_take(Duration::from_secs(300)).await?;
    page.promise(include_str!("search.js"), vec![]).await
}

/// Pastes, types and chooses values on the page of the setup, and prints how long their results took.
async fn print_all_changes(page: &Page) -> WebDriverResult<()> {
    print_changes("pasted", &changes(page, list(), "set").await?);
    page.go(SETUP).await?;
    let mut all = changes(page, numbers(), "typed").await?;
    print_changes("typed", &all);
    page.go(SETUP).await?;
    let pressed = changes(page, list(), "chosen").await?;
    print_changes("stepped or chosen", &pressed);
    all.extend(pressed);
    print_changes("by any control", &all);
    Ok(())
}

fn print_changes(how: &str, changes: &[Change]) {
    let column = |of: fn(&Change) -> f64| Quantiles::of(&changes.iter().map(of).collect::<Vec<_>>());
    println!(
        "{:<34}{}",
        format!("{how} to result, {} changes", changes.len()),
        column(|c| c.2)
    );
    println!("{:<34}{}", format!("{how} to painted frame"), column(|c| c.3));
    let mut entries: Vec<_> = changes.iter().map(|c| c.0.as_str()).collect();
    entries.sort_unstable();
    entries.dedup();
    for entry in entries {
        let of: Vec<_> = changes.iter().filter(|c| c.0 == entry).map(|c| c.3).collect();
        println!("{:<34}{}", format!("  painted, {entry}"), Quantiles::of(&of));
    }
}
