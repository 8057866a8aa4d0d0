//! `cargo xtask shots`: takes screenshots of the built pages in a real Chromium once their results are shown.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

#[path = "../browser/chromedriver.rs"]
mod chromedriver;
#[path = "../browser/page.rs"]
#[allow(dead_code, reason = "the browser tests use all of it")]
mod page;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use thirtyfour::error::WebDriverResult;

use page::{Page, built, copy, with_browser};
use xtask::root;
use xtask::static_server::Server;

/// Viewport widths in CSS pixels.
const WIDTHS: [u32; 2] = [1440, 390];

/// Languages of the pages.
const LANGUAGES: [&str; 3] = ["en", "zh-CN", "zh-TW"];

/// Name of each page, its path and entries, and the test id that marks its result.
const PAGES: [(&str, &str, &str); 15] = [
    ("plan", "/?", "verdict"),
    ("recorded", "/recorded?", "gallery-item"),
    ("recorded-one", "/recorded?recording=r3d-18&", "verdict"),
    (
        "recorded-sizes",
        "/recorded?recording=run.sizes.gz&limit_gib=6&",
        "what-if-row",
    ),
    (
        "recorded-outside",
        "/recorded?recording=run.sizes.gz&sizes=batch%3D9&",
        "copy-sizes-command",
    ),
    ("recommend", "/recommend?", "course-cards"),
    ("attention", "/attention?", "formula-memory"),
    ("diagnose", "/diagnose?", "diagnose-text"),
    ("benchmarks", "/benchmarks?", "nav/benchmarks"),
    ("course", "/course?", "course-cover"),
    ("course-first", "/course?row=9.params&", "course-peak"),
    ("course-budget", "/course?row=9.1&", "course-row"),
    ("course-stats", "/course?row=9.stats&", "course-row"),
    ("course-tree", "/course?row=11.tree&", "course-row"),
    ("course-cards", "/course?row=V.cards&", "course-row"),
];

/// Delay for single changes and sweeps, which continue after the verdict.
const SETTLED: Duration = Duration::from_millis(2500);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/shots"));
    std::fs::create_dir_all(&folder).expect("target is ours");
    // A recording of several sizes, which no published page has beside it.
    let beside = tempfile::tempdir().expect("a folder of this program's own");
    copy(&built(), beside.path()).expect("the built page can be copied");
    let sizes = root().join("tests/data/recordings/qwen2-4layers-bf16.sizes.gz");
    std::fs::copy(sizes, beside.path().join("run.sizes.gz")).expect("it is committed");
    let server = Server::start(beside.path().to_owned(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        for width in WIDTHS {
            for theme in ["light", "dark"] {
                for lang in LANGUAGES {
                    for (name, path, result) in PAGES {
                        let file = folder.join(format!("{name}-{width}-{theme}-{lang}.png"));
                        page.go(&format!("#{path}theme={theme}&lang={lang}")).await?;
                        page.find(result).await?;
                        shot(page, width, &file).await?;
                        println!("{}", file.display());
                    }
                }
            }
        }
        Ok(())
    })
    .await;
}

/// Takes a screenshot of the whole page at its full height.
async fn shot(page: &Page, width: u32, file: &Path) -> WebDriverResult<()> {
    resize(page, width, 1000).await?;
    tokio::time::sleep(SETTLED).await;
    let height = page.script::<u32>("return document.documentElement.scrollHeight");
    let height = height.until(|height| *height > 0).await?;
    resize(page, width, height).await?;
    // Parts that have just become visible start to load.
    tokio::time::sleep(SETTLED).await;
    page.screenshot(file).await
}

async fn resize(page: &Page, width: u32, height: u32) -> WebDriverResult<()> {
    let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 2, "mobile": width < 500 });
    page.devtools("Emulation.setDeviceMetricsOverride", metrics).await
}
