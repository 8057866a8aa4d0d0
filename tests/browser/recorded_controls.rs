//! Controls of a recording: sizes, card and allocator; its time, single changes, largest batch and exports.

use serde_json::Value;
use thirtyfour::Key;
use thirtyfour::error::WebDriverResult;
use xtask::root;
use xtask::static_server::Server;

use crate::Page;
use crate::accessible::{findings, set_width};
use crate::export::{alike, run_in, saved};
use crate::offline::copy_of_page;
use crate::page::{with_browser, with_page};
use crate::recorded::{OF_TESTS, drop_bytes, estimate, said, shows, unpacked};
use crate::time::{as_said, ask, come};

/// A recording of all batches from 2 to 4 and lengths from 256 to 640, made for an H100.
const ALL_SIZES: &str = "tests/data/recordings/qwen2-4layers-bf16.sizes.gz";
/// Name under which tests drop it.
const NAME: &str = "run.sizes.gz";
/// Card that it was made for.
const CARD: &str = "H100 SXM";

fn read(path: &str) -> Vec<u8> {
    std::fs::read(root().join(path)).expect("it is committed")
}

/// Opens the page with the recording of all sizes.
async fn open_sizes(page: &Page, recording: &[u8]) -> WebDriverResult<()> {
    drop_bytes(page, ".results", NAME, recording).await?;
    page.find("recorded-sizes").await?;
    Ok(())
}

/// Difference of a single change in bytes, once it is tried.
async fn row(page: &Page, name: &str) -> WebDriverResult<i64> {
    let script = "const row = document.querySelector(`[data-testid=what-if-row][data-name='${arguments[0]}']`);\
                  return row?.dataset.value ?? null";
    let value = page
        .script_with::<Option<String>>(script, vec![name.into()])
        .named(name);
    Ok(value.present().await?.parse().expect("a whole number"))
}

async fn pick(page: &Page, name: &str) -> WebDriverResult<()> {
    page.click_at(&format!("[data-testid=what-if-row][data-name='{name}']"))
        .await
}

fn reserved(answer: &Value) -> i64 {
    answer["peak_reserved"].as_i64().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn chosen_sizes_give_the_bytes_of_the_command_line() {
    let recording = read(ALL_SIZES);
    let at = |sizes: &str| said("estimate", &recording, &["--gpu", CARD, "--at", sizes]);
    with_page("#/recorded", async |page| {
        open_sizes(page, &recording).await?;
        shows(page, &at("batch=2,seq=256")).await?;
        page.enter("size-batch", "4").await?;
        shows(page, &at("batch=4,seq=256")).await?;
        // The first digits of a length were not recorded, the whole of it was.
        page.enter("size-seq", "600").await?;
        shows(page, &at("batch=4,seq=600")).await?;
        page.fragment().contains("sizes=batch%3D4%2Cseq%3D600").await?;
        // Steps stay within the recorded range, at the distance of recorded lengths.
        page.click_at("[data-testid=size-seq] + button").await?;
        shows(page, &at("batch=4,seq=640")).await?;
        page.click_at("[data-testid=size-seq] + button").await?;
        page.prop("size-seq", "value").holds("640").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn sizes_that_were_not_recorded_say_so_with_the_command_that_records_them() {
    let recording = read(ALL_SIZES);
    with_page("#/recorded", async |page| {
        open_sizes(page, &recording).await?;
        page.enter("size-batch", "9").await?;
        page.until(
            "the refusal",
            || page.value("refusal"),
            |value| value.as_deref() == Some("out-of-range"),
        )
        .await?;
        let words = page.text("refusal").nonempty().await?;
        for part in [
            "Micro-batch 9",
            "Micro-batch 2 to 4",
            "256 to 640",
            "--vary batch:2,3,4,9",
        ] {
            assert!(words.contains(part), "{part:?}: {words}");
        }
        page.enter("size-batch", "3").await?;
        shows(page, &said("estimate", &recording, &["--gpu", CARD, "--at", "batch=3"])).await?;
        // What is typed within a second and a half is one entry, unless the field is left.
        page.keys(Key::Tab + "").await?;
        page.enter("size-batch", "x").await?;
        page.until(
            "the message",
            || page.text("error-sizes"),
            |text| text.contains("batch=x") && text.contains("batch=3"),
        )
        .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn single_changes_are_the_differences_of_the_command_line() {
    let recording = read(ALL_SIZES);
    let of = |flags: &[&str]| reserved(&said("estimate", &recording, flags));
    with_page("#/recorded", async |page| {
        open_sizes(page, &recording).await?;
        let before = of(&["--gpu", CARD]);
        for (name, flags) in [
            ("batch=4", ["--gpu", CARD, "--at", "batch=4"]),
            ("seq=512", ["--gpu", CARD, "--at", "seq=512"]),
            ("gpu=H200", ["--gpu", "H200", "--at", "batch=2"]),
            ("gpu=H100 PCIe", ["--gpu", "H100 PCIe", "--at", "batch=2"]),
        ] {
            assert_eq!(row(page, name).await?, of(&flags) - before, "{name}");
        }
        let flags = ["--gpu", CARD, "--expandable-segments"];
        assert_eq!(row(page, "expandable_segments=true").await?, of(&flags) - before);
        // A change that is picked is applied, and those after it start from there.
        pick(page, "batch=4").await?;
        shows(page, &said("estimate", &recording, &["--gpu", CARD, "--at", "batch=4"])).await?;
        pick(page, "gpu=H200").await?;
        let after = ["--gpu", "H200", "--at", "batch=4"];
        shows(page, &said("estimate", &recording, &after)).await?;
        let less = ["--gpu", "H200", "--at", "batch=2"];
        assert_eq!(row(page, "batch=2").await?, of(&less) - of(&after));
        page.fragment().contains("gpu=H200").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_largest_batch_is_the_command_lines_and_can_be_chosen() {
    let recording = read(ALL_SIZES);
    with_page("#/recorded?limit_gib=6", async |page| {
        open_sizes(page, &recording).await?;
        page.enter("size-seq", "512").await?;
        let flags = ["--gpu", CARD, "--limit-gib", "6", "--at", "seq=512"];
        let wanted = said("max-batch", &recording, &flags)["max_batch"].to_string();
        page.until(
            "the batch",
            || page.value("largest-batch"),
            |value| value.as_deref() == Some(&*wanted),
        )
        .await?;
        page.click("largest-batch-use").await?;
        let at = format!("seq=512,batch={wanted}");
        let flags = ["--gpu", CARD, "--limit-gib", "6", "--at", &at];
        shows(page, &said("estimate", &recording, &flags)).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_time_of_a_recorded_step_is_the_command_lines() {
    let recording = read(OF_TESTS);
    // Its own card, an H100, gives way to the one that is planned for, here one whose kernels were measured.
    with_page("#/recorded?gpu=H200", async |page| {
        drop_bytes(page, ".results", "run.vram.gz", &recording).await?;
        ask(page).await?;
        as_said(page, &estimate(&recording, "H200")).await?;
        page.value("time-basis").holds("measured").await?;

        // Kernels that no rule times are listed.
        page.go("#/recorded?recording=fasterrcnn-resnet50-fpn&gpu=H100%20SXM")
            .await?;
        let answer = estimate(&unpacked("fasterrcnn-resnet50-fpn"), CARD);
        let untimed = answer["recording"]["untimed"].as_array().expect("a list");
        assert!(!untimed.is_empty(), "{answer}");
        page.until(
            "the kernels",
            || page.text("time-untimed"),
            |text| untimed.iter().all(|of| text.contains(of[0].as_str().expect("a name"))),
        )
        .await?;
        come(page).await?;
        as_said(page, &answer).await?;
        page.value("time-basis").holds("data-sheet").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_saved_report_and_the_command_are_of_the_chosen_sizes() {
    let recording = read(ALL_SIZES);
    let folder = tempfile::tempdir().expect("a folder of the test's own");
    std::fs::write(folder.path().join(NAME), &recording).expect("a file of the test's own");
    with_page("#/recorded", async |page| {
        open_sizes(page, &recording).await?;
        page.enter("size-batch", "3").await?;
        page.choose("expandable_segments", "true").await?;
        let flags = ["--gpu", CARD, "--at", "batch=3", "--expandable-segments"];
        shows(page, &said("estimate", &recording, &flags)).await?;
        let theirs = run_in(folder.path(), &page.text("command").nonempty().await?, "json");
        assert_eq!(theirs["recording"]["at"]["sizes"][0][1], 3);
        assert!(theirs["time"]["step_ms"].is_number());
        let ours: Value = serde_json::from_str(&saved(page, "save-json").await?).expect("it is JSON");
        alike(&ours, &theirs, "");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_the_sizes_and_they_fit_a_phone() {
    let folder = copy_of_page("sizes");
    std::fs::copy(root().join(ALL_SIZES), folder.join(NAME)).expect("it is committed");
    let server = Server::start(folder, 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        for (width, theme, lang) in [(1440, "light", "en"), (390, "dark", "zh-CN"), (390, "light", "zh-TW")] {
            for (sizes, result) in [("batch%3D3", "what-if-row"), ("batch%3D9", "copy-sizes-command")] {
                set_width(page, width).await?;
                let address = format!("#/recorded?recording={NAME}&sizes={sizes}&theme={theme}&lang={lang}");
                page.go(&address).await?;
                page.find(result).await?;
                page.find("size-batch").await?;
                assert_eq!(
                    findings(page).await?,
                    Vec::<String>::new(),
                    "{sizes}, {lang}, {width} px"
                );
                let wide = "return document.documentElement.scrollWidth";
                page.script::<u32>(wide)
                    .named(lang)
                    .until(|wide| *wide <= width)
                    .await?;
            }
        }
        Ok(())
    })
    .await;
}
