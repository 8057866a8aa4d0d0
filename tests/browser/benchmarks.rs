//! Tests the benchmarks page: published records, local files, comparison of records, and the user's own card.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use thirtyfour::prelude::*;
use xtask::static_server::Server;

use crate::accessible::{findings, set_width};
use crate::offline::copy_of_page;
use crate::page::{Page, Shown, built, with_browser, with_page};
use crate::same_bytes::binary;

const H200: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/records/h200.json");
const H100: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/records/h100.json");
const LAVAPIPE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/records/lavapipe.json");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/records/example.json");

/// Serves the built page with records that `vramscope export` placed beside it.
fn published(name: &str, files: &[&str]) -> Server {
    let folder = copy_of_page(name);
    let output = Command::new(binary())
        .arg("export")
        .arg(folder.join("data"))
        .args(files)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Server::start(folder, 0).expect("a port is free")
}

/// Writes a file for a test and returns its path.
fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file of the test's own");
    path.to_str().expect("UTF-8").to_owned()
}

async fn open(page: &Page, file: &str) -> WebDriverResult<()> {
    let input = page.find("bench-files").await?;
    input.send_keys(file).await
}

fn count<'a>(page: &'a Page, selector: &str) -> Shown<'a, usize> {
    let script = "return document.querySelectorAll(arguments[0]).length";
    page.script_with(script, vec![selector.into()])
}

async fn columns(page: &Page, wanted: usize) -> WebDriverResult<()> {
    let read = || count(page, "[data-testid=bench-column]");
    page.until("cards", read, |found| *found == wanted).await?;
    Ok(())
}

/// Returns `H200.json` with all times of the first kernels doubled and a newer driver.
fn slower() -> String {
    let mut record: Value = serde_json::from_str(&std::fs::read_to_string(H200).expect("kept")).expect("JSON");
    record["device"]["driver"] = "999.1".into();
    record["date"] = "2026-11-30T10:00:00Z".into();
    for result in record["results"].as_array_mut().expect("results").iter_mut().take(3) {
        let measured = &mut result["outcome"]["measured"];
        let double = |value: &Value| Value::from(2 * value.as_u64().expect("nanoseconds"));
        let samples = measured["samples_ns"].as_array().expect("samples").iter().map(double);
        measured["samples_ns"] = samples.collect();
        for name in ["median_ns", "min_ns", "max_ns", "median_deviation_ns"] {
            measured["summary"][name] = double(&measured["summary"][name]);
        }
    }
    record.to_string()
}

/// The page opens with the repository's records, listed as `vramscope export` lists them; bars are shares of the sheet.
#[tokio::test]
async fn the_records_of_the_repository_are_published_with_the_page() {
    let folder = tempfile::tempdir().expect("a folder of the test's own");
    let output = Command::new(binary())
        .arg("export")
        .arg(folder.path())
        .args([H200, H100])
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list = |path: PathBuf| {
        let text = std::fs::read_to_string(path).expect("a list");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let exported = list(folder.path().join("records.json"));
    assert_eq!(list(built().join("data/records.json")), exported);
    with_page("#/benchmarks", async |page| {
        columns(page, 2).await?;
        let shares = "return [...document.querySelectorAll('[data-testid=reach-bf16]')].map((cell) =>
            [parseFloat(cell.querySelector('.bench-bar > span').style.width), parseFloat(cell.querySelector('.muted').textContent)])";
        let agree = |shares: &Vec<[f64; 2]>| {
            shares.len() == 2 && shares.iter().all(|[bar, said]| (bar - said).abs() <= 0.5)
        };
        page.script::<Vec<[f64; 2]>>(shares).until(agree).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn published_cards_are_compared_and_the_address_holds_which() {
    let site = published("bench-published", &[H200, LAVAPIPE, EXAMPLE]);
    with_browser(&site.origin(), async |page| {
        page.go("#/benchmarks").await?;
        // Without a selection, the newest record of each of two cards is shown.
        columns(page, 2).await?;
        page.value("bench-list").holds("3").await?;
        let script = "return [...document.querySelectorAll('[data-testid=reach-memory]')].map((e) => +e.dataset.value)";
        // The H200's largest copy: 8 589 934 592 bytes in 2.000 ms.
        let is_copy = |rate: &f64| (rate / 4.295e12 - 1.0).abs() < 0.01;
        page.script::<Vec<f64>>(script)
            .until(|memory| memory.iter().any(is_copy))
            .await?;
        page.click_at("tr:last-child [data-testid=bench-pick]").await?;
        columns(page, 3).await?;
        let address = page.fragment().contains("records=").await?;
        page.go(&address).await?;
        columns(page, 3).await?;
        for chart in ["bench-roofline", "products", "attention", "bandwidth"] {
            page.click_at(&format!("[data-testid='{chart}-table'] summary")).await?;
            let rows = || count(page, "details[open] tbody tr");
            page.until(chart, rows, |rows| *rows > 0).await?;
            page.click_at(&format!("[data-testid='{chart}-table'] summary")).await?;
        }
        // An empty selection is stored too.
        for _ in 0..3 {
            page.click_at("[data-testid=bench-pick]:checked").await?;
        }
        columns(page, 0).await?;
        page.fragment().contains("records=none").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn files_from_disk_say_what_changed_and_become_my_card() {
    let newer = file("slower.json", &slower());
    with_page("#/benchmarks?records=none", async |page| {
        page.find("bench-list").await?;
        open(page, H200).await?;
        columns(page, 1).await?;
        open(page, &newer).await?;
        columns(page, 2).await?;
        let changed = page
            .until("changes", || page.value("change-count"), Option::is_some)
            .await?;
        assert_eq!(changed.as_deref(), Some("3"), "the three that were made slower");
        let ratio: f64 = page.value("change").present().await?.parse().expect("a ratio");
        assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
        // The driver is not the same.
        page.text("bench-changes").contains("999.1").await?;

        page.click("make-mine").await?;
        page.until(
            "my card",
            || page.value("my-card"),
            |card| card.as_deref() == Some("NVIDIA H200"),
        )
        .await?;
        page.click("plan-on-mine").await?;
        page.find("peak-allocated").await?;
        page.fragment().contains("gpu=H200").await?;
        page.go("#/attention?heads=32&kv_heads=32&head_dim=128&pass=forward&causal=false")
            .await?;
        page.text("record-state").contains("NVIDIA H200").await?;
        page.go("#/benchmarks").await?;
        page.click("forget-mine").await?;
        page.until("nobody's card", || page.value("my-card"), Option::is_none)
            .await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_is_no_record_is_refused_and_no_text_becomes_markup() {
    let markup = "<img src=x onerror=window.hacked=1>";
    let text = std::fs::read_to_string(EXAMPLE)
        .expect("kept")
        .replace("NVIDIA H200", markup);
    let hostile = file("hostile.json", &text.replace("fell by 2%", markup));
    let (broken, empty) = (file("broken.json", "{"), file("empty.json", "{\"attention\":[]}"));
    with_page("#/benchmarks?records=none", async |page| {
        for (file, why) in [(&broken, "broken.json: "), (&empty, "empty.json: ")] {
            open(page, file).await?;
            page.until(why, || page.text("bench-failed"), |text| text.contains(why))
                .await?;
        }
        open(page, &hostile).await?;
        columns(page, 1).await?;
        // It is shown as it stands.
        page.text("bench-cards").contains("<img").await?;
        let hacked = "return window.hacked === 1 || document.querySelector('#results img') !== null";
        page.script::<bool>(hacked).is(false).await?;
        Ok(())
    })
    .await;
}

/// Script that makes the server give this answer to the list of records, and then leaves the page.
fn host_answers(answer: &str) -> String {
    format!(
        "window.fetchAnything ??= window.fetch;
        window.fetch = async (asked, ...more) =>
            asked.url?.includes('data/records.json') ? {answer} : fetchAnything(asked, ...more);
        location.hash = '#/'"
    )
}

#[tokio::test]
async fn every_state_of_the_host_is_told() {
    let site = published("bench-states", &[EXAMPLE]);
    with_browser(&site.origin(), async |page| {
        page.go("#/benchmarks").await?;
        columns(page, 1).await?;
        // Answers of a server in other states, simulated without one.
        let answers = [
            ("closed", "new Response('{}', { status: 401 })"),
            ("busy", "new Response('', { status: 503 })"),
            ("odd", "new Response('{')"),
            ("none", "new Response('', { status: 404 })"),
            ("empty", "new Response('{\"records\":[],\"next\":null}')"),
            ("offline", "Promise.reject(new TypeError('offline'))"),
        ];
        for (state, answer) in answers {
            page.run(host_answers(answer)).await?;
            page.find("peak-allocated").await?;
            page.run("location.hash = '#/benchmarks'").await?;
            let shown = || page.value("bench-state");
            page.until(state, shown, |shown| shown.as_deref() == Some(state))
                .await?;
        }
        // Local files work without a server.
        open(page, H200).await?;
        columns(page, 1).await?;
        // With a token, the next request succeeds.
        let answer = "asked.headers.get('authorization') === 'Bearer vrs_1' \
            ? new Response('{\"records\":[],\"next\":null}') : new Response('{}', { status: 401 })";
        page.run(host_answers(answer)).await?;
        page.find("peak-allocated").await?;
        page.run("location.hash = '#/benchmarks'").await?;
        page.find("bench-token").await?.send_keys("vrs_1\n").await?;
        page.until(
            "unlocked",
            || page.value("bench-state"),
            |state| state.as_deref() == Some("empty"),
        )
        .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_among_cards() {
    let site = published("bench-axe", &[H200, LAVAPIPE]);
    with_browser(&site.origin(), async |page| {
        for (width, theme, lang) in [(1440, "light", "en"), (390, "dark", "zh-CN"), (390, "light", "zh-TW")] {
            set_width(page, width).await?;
            page.go(&format!("#/benchmarks?theme={theme}&lang={lang}")).await?;
            columns(page, 2).await?;
            page.click("make-mine").await?;
            page.find("my-card").await?;
            assert_eq!(
                findings(page).await?,
                Vec::<String>::new(),
                "{theme}, {lang}, {width} px"
            );
            let wide = "return document.documentElement.scrollWidth";
            page.script::<u32>(wide)
                .named(lang)
                .until(|wide| *wide <= width)
                .await?;
        }
        page.go("#/benchmarks?records=none").await?;
        page.find("bench-list").await?;
        assert_eq!(findings(page).await?, Vec::<String>::new(), "nothing chosen");
        Ok(())
    })
    .await;
}
