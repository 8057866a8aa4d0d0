//! Follows a measurement end to end: `bench` measures and uploads, `serve` stores, the page in Chromium shows it and
//! uses it as the card for time estimates.
//!
//! The binary has the portable backend, which measures on any Vulkan device: in CI on Mesa's lavapipe, which emulates a
//! GPU on the CPU. `cargo xtask test` builds both and runs this.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "shared with other tests, which use more"
)]

#[path = "../browser/chromedriver.rs"]
mod chromedriver;
#[path = "../browser/page.rs"]
mod page;
#[path = "../server/support/mod.rs"]
mod support;

use serde_json::Value;
use thirtyfour::error::WebDriverResult;

use page::{Page, built, with_browser};
use support::{Postgres, Scratch, Server, get, id_of, vramscope};

/// Small kernels, one for each value on the page: an emulated GPU takes minutes for large ones.
const KERNELS: [&str; 4] = [
    "=device_copy 1.0MiB",
    "=gemm fp32 256x256x256 nt",
    "=softmax fp32 64x1024",
    "=attention flash fp32 1x16x128x64 forward",
];

/// Measures and uploads, and returns the record; `None` if there is neither a GPU nor an emulated one.
fn bench(scratch: &Scratch, server: &Server) -> Option<Value> {
    let record = scratch.path("card.json");
    let mut command = vramscope(scratch.folder());
    command
        .args(["bench", "--backend", "portable"])
        .args(KERNELS)
        .arg("--output")
        .arg(&record)
        .args(["--upload", &server.url(), "--yes"])
        .env("VRAMSCOPE_TOKEN", server.token("write"));
    let output = command.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("no GPU can be measured here") {
        eprintln!("skipped: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("… stored\n"),
        "{output:?}"
    );
    let text = std::fs::read_to_string(record).expect("bench wrote its record");
    Some(serde_json::from_str(&text).expect("JSON"))
}

/// The way of one measurement, with a server that keeps it in this database.
async fn walk(database: &str) {
    let scratch = Scratch::new();
    let page = built();
    let folder = page.to_str().expect("UTF-8");
    let server = Server::start_with(database, &["--rate", "0", "--page", folder]);
    let Some(measured) = bench(&scratch, &server) else {
        return;
    };
    let list = get(server.address, "/api/records", None).is(200).json();
    let id = id_of(&list["records"][0]);
    let origin = format!("{}/", server.url());
    with_browser(&origin, async |page| {
        page.go("#/benchmarks").await?;
        let shown = page.value("reach-fp32").present().await?;
        // The page's fastest product is the record's.
        assert_eq!(shown.parse().ok(), Some(fastest_product(&measured)));
        let name = measured["device"]["name"].as_str().expect("a name");
        page.text("bench-record").contains(name).await?;
        choose_card(page, &id).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// Selects the record as this browser's card; the other pages use it, and it is still selected on return.
async fn choose_card(page: &Page, id: &str) -> WebDriverResult<()> {
    page.click("make-mine").await?;
    page.value("my-card").present().await?;
    let kept = "return JSON.parse(JSON.parse(localStorage.getItem('vramscope.card'))).id";
    page.script::<String>(kept).is(id).await?;
    page.go("#/attention").await?;
    page.text("record-state").contains(" of ").await?;
    page.go("#/benchmarks").await?;
    page.value("my-card").present().await?;
    Ok(())
}

/// Computes the fastest product as the page does: operations over the median time.
fn fastest_product(record: &Value) -> f64 {
    let results = record["results"].as_array().expect("results");
    let rate = |result: &Value| {
        let is_product = result["kernel"]["class"] == "gemm";
        let median = result["outcome"]["measured"]["summary"]["median_ns"].as_u64();
        let flops = result["flops"].as_u64().filter(|_| is_product)?;
        Some(flops as f64 / (median? as f64 / 1e9))
    };
    results.iter().filter_map(rate).fold(0.0, f64::max)
}

#[tokio::test]
async fn a_measurement_reaches_the_page_through_sqlite() {
    let scratch = Scratch::new();
    walk(scratch.path("results.db").to_str().expect("UTF-8")).await;
}

#[tokio::test]
async fn a_measurement_reaches_the_page_through_postgresql() {
    match Postgres::start() {
        Some(postgres) => walk(&postgres.url()).await,
        None => eprintln!("PostgreSQL is not installed: skipped (Debian: apt-get install postgresql)"),
    }
}
