//! Measures how long the page takes to open each recording of the gallery, and to follow the sizes of another one.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use thirtyfour::error::WebDriverResult;
use xtask::root;

use crate::page::Page;
use crate::quantiles::Quantiles;
use crate::{Timed, changes, print_changes};

/// Number of times that each recording is opened.
const ROUNDS: usize = 3;
/// Number of recordings that one script opens.
const AT_ONCE: usize = 8;
/// Number of the slowest recordings that are listed.
const LISTED: usize = 5;
/// Recording of several sizes.
const ALL_SIZES: &str = "tests/data/recordings/qwen2-4layers-bf16.sizes.gz";

/// Drops a file of these bytes, given as Base64, onto the page.
const DROP: &str = "const bytes = Uint8Array.from(atob(arguments[1]), (c) => c.charCodeAt(0)); \
    const data = new DataTransfer(); data.items.add(new File([bytes], arguments[0])); \
    document.querySelector('.results').dispatchEvent( \
        new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))";

/// An opened recording: its name, and the milliseconds until its figures and until everything was painted.
#[derive(Debug, Clone, Deserialize)]
struct Opened(String, f64, f64);

/// Opens every recording of the gallery, changes sizes of another, and prints the times.
pub async fn print(page: &Page) -> WebDriverResult<()> {
    page.go("#/recorded").await?;
    page.find("gallery-item").await?;
    let names = "return [...document.querySelectorAll('[data-testid=gallery-item]')].map((e) => e.dataset.name)";
    let names = page
        .script::<Vec<String>>(names)
        .until(|names| !names.is_empty())
        .await?;
    page.let_scripts_take(Duration::from_secs(600)).await?;
    // The first one waits for the code that replays recordings.
    let first = open(page, &names[..1]).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(open(page, &names).await?);
    }
    let medians: Vec<Opened> = (0..names.len())
        .map(|i| median(rounds.iter().map(|round| &round[i])))
        .collect();
    let column = |of: fn(&Opened) -> f64| Quantiles::of(&medians.iter().map(of).collect::<Vec<_>>());
    println!("\n{:<34}{:>9}{:>9}{:>9}", "recordings, ms", "median", "p95", "most");
    println!(
        "{:<34}{}",
        format!("file to figures, {} recordings", names.len()),
        column(|o| o.1)
    );
    println!("{:<34}{}", "file to everything", column(|o| o.2));
    let mut slowest = medians;
    slowest.sort_by(|a, b| b.1.total_cmp(&a.1));
    for Opened(name, figures, whole) in slowest.iter().take(LISTED) {
        println!(
            "{:<34}{figures:>9.1}{whole:>9.1}",
            format!("  {name}: figures, everything")
        );
    }
    let [Opened(name, figures, whole)] = &first[..] else {
        return Ok(());
    };
    println!(
        "{:<34}{figures:>9.1}{whole:>9.1}",
        format!("  first of a visit: {name}")
    );
    follow_sizes(page).await
}

async fn open(page: &Page, names: &[String]) -> WebDriverResult<Vec<Opened>> {
    let mut opened = Vec::new();
    // The driver's client waits two minutes for one answer.
    for some in names.chunks(AT_ONCE) {
        let script = include_str!("gallery.js");
        let answer: Timed<Opened> = page.promise(script, vec![json!(some)]).await?;
        opened.extend(answer.expect_all());
    }
    Ok(opened)
}

fn median<'a>(of: impl Iterator<Item = &'a Opened>) -> Opened {
    let all: Vec<&Opened> = of.collect();
    let middle = |value: fn(&Opened) -> f64| {
        let mut values: Vec<f64> = all.iter().map(|opened| value(opened)).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Opened(all[0].0.clone(), middle(|o| o.1), middle(|o| o.2))
}

/// Changes batch and length of a recording of several sizes.
async fn follow_sizes(page: &Page) -> WebDriverResult<()> {
    let bytes = std::fs::read(root().join(ALL_SIZES)).expect("it is committed");
    let args = vec![json!("run.sizes.gz"), json!(STANDARD.encode(bytes))];
    page.run_with(DROP, args).await?;
    page.find("size-batch").await?;
    page.find("peak-allocated").await?;
    let round = |n: u64| {
        [
            ("size-batch", (3 + n % 2).to_string()),
            ("size-seq", (300 + 16 * n).to_string()),
            ("size-batch", "2".to_owned()),
        ]
    };
    let list: Vec<_> = (0..8).flat_map(round).collect();
    print_changes("sizes of a recording", &changes(page, list, "set").await?);
    Ok(())
}
