//! Tests the time of a step: it equals the command line's, uses the same kernels, and loads after the first result.

use std::process::Command;

use serde_json::Value;
use thirtyfour::error::WebDriverResult;

use crate::accessible::{findings, set_width};
use crate::page::{Page, Shown, built, with_browser, with_page};
use crate::same_bytes::binary;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/records/h200.json");

/// Output of the command line for the same setup.
fn said(flags: &[&str]) -> Value {
    let output = Command::new(binary())
        .arg("estimate")
        .args(flags)
        .args(["--format", "json"])
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// Waits for the first result, and for its time until it is complete.
pub async fn ask(page: &Page) -> WebDriverResult<()> {
    page.find("peak-allocated").await?;
    come(page).await
}

/// Waits until the complete time is shown.
pub async fn come(page: &Page) -> WebDriverResult<()> {
    page.find("bottleneck").await?;
    let busy = "return document.querySelector('[data-testid=time-body]')?.ariaBusy ?? 'true'";
    let busy = || page.script::<String>(busy);
    page.until("the whole time", busy, |busy| busy == "false").await?;
    Ok(())
}

async fn number(page: &Page, testid: &str) -> WebDriverResult<f64> {
    let value = page.value(testid).present().await?;
    Ok(value.parse().expect("a number"))
}

/// Milliseconds of each part of the step, by name.
fn parts(page: &Page) -> Shown<'_, Vec<(String, f64)>> {
    let script = "return [...document.querySelectorAll('[data-testid=time-part]')]
        .map((e) => [e.dataset.name, Number(e.dataset.value)])";
    page.script(script)
}

fn same(shown: f64, said: &Value) {
    let said = said.as_f64().unwrap_or_else(|| panic!("{said} is no number"));
    assert!((shown / said - 1.0).abs() < 1e-9, "{shown} here, {said} there");
}

/// Asserts that every figure equals the command line's.
pub async fn as_said(page: &Page, said: &Value) -> WebDriverResult<()> {
    let time = &said["time"];
    same(number(page, "step-ms").await?, &time["step_ms"]);
    if !time["step_ms_interval"].is_null() {
        same(number(page, "step-ms-low").await?, &time["step_ms_interval"][0]);
    }
    same(number(page, "samples-per-s").await?, &time["samples_per_s"]);
    same(number(page, "flops-utilisation").await?, &time["flops_utilisation"]);
    if !time["tokens_per_s"].is_null() {
        same(number(page, "tokens-per-s").await?, &time["tokens_per_s"]);
    }
    let parts = parts(page).until(|parts| !parts.is_empty()).await?;
    for (name, ms) in parts.iter().filter(|(name, _)| name != "wait") {
        same(*ms, &said["ms"][name]);
    }
    let bottleneck = time["bottlenecks"][0]["resource"].as_str().expect("a resource");
    page.value("bottleneck").holds(bottleneck).await
}

#[tokio::test]
async fn the_time_is_the_command_lines_from_measured_kernels_and_from_a_data_sheet() {
    with_page("#/?model=gpt2&batch=4&seq=512&gpu=H200", async |page| {
        ask(page).await?;
        let gpt2 = ["gpt2", "--batch", "4", "--seq", "512"];
        as_said(page, &said(&[&gpt2[..], &["--gpu", "H200"]].concat())).await?;
        page.value("time-basis").holds("measured").await?;

        // Once requested, it loads on its own, also for another card or a vision-language model.
        page.go("#/?model=gpt2&batch=4&seq=512&gpu=RTX%204090&optim=adamw_fused")
            .await?;
        come(page).await?;
        let flags = [&gpt2[..], &["--gpu", "RTX 4090", "--optim", "adamw_fused"]].concat();
        as_said(page, &said(&flags)).await?;
        page.value("time-basis").holds("data-sheet").await?;
        page.find("measure-card").await?;

        page.go("#/?model=tinyllava-1.5b&seq=800&accum=2&gpu=H200").await?;
        come(page).await?;
        let flags = ["tinyllava-1.5b", "--seq", "800", "--accum", "2", "--gpu", "H200"];
        as_said(page, &said(&flags)).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn nothing_of_it_is_fetched_before_the_first_result() {
    with_page("", async |page| {
        let watch = "const look = () => document.querySelector('[data-testid=peak-allocated]')
                ? (window.first = performance.now()) : requestAnimationFrame(look);
            requestAnimationFrame(look)";
        page.before_load(watch).await?;
        page.go("#/?model=gpt2").await?;
        ask(page).await?;
        let later =
            "const chunk = performance.getEntriesByType('resource').find((e) => e.name.includes('/chunks/time-'));
            return chunk.startTime > window.first - 50";
        page.script::<bool>(later).is(true).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_change_brings_its_own_time_and_each_number_says_how_it_comes_about() {
    with_page("#/?model=gpt2&batch=2&seq=256&gpu=H200", async |page| {
        ask(page).await?;
        let before = page.value("step-ms").present().await?;
        page.enter("batch", "16").await?;
        page.changed("step-ms", &before).await?;
        come(page).await?;
        as_said(page, &said(&["gpt2", "--batch", "16", "--seq", "256", "--gpu", "H200"])).await?;
        let shown = page.text("step-ms").nonempty().await?;
        page.click("step-ms").await?;
        page.until("the result", || page.text("told-result"), |result| *result == shown)
            .await?;
        let numbers = page.text("told-numbers").nonempty().await?;
        assert!(numbers.starts_with("1 × ("), "{numbers}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn data_and_price_are_told_as_the_command_line_tells_them() {
    let of_run = "data=read%3D20%2Cdecode%3D60%2Cworkers%3D2&samples=1000000&price_per_hour=2.5&watts=700";
    with_page(
        &format!("#/?model=gpt2&batch=4&seq=512&gpu=H200&{of_run}"),
        async |page| {
            // An entry that concerns the time counts as a request.
            come(page).await?;
            let flags = "gpt2 --batch 4 --seq 512 --gpu H200 --data read=20,decode=60,workers=2 --samples 1000000 \
                     --price-per-hour 2.5 --watts 700";
            let flags: Vec<&str> = flags.split_whitespace().collect();
            let said = said(&flags);
            as_said(page, &said).await?;
            let time = &said["time"];
            page.value("bottleneck").holds("data").await?;
            let wait = parts(page).map(|parts| parts.into_iter().find(|(name, _)| name == "wait"));
            same(wait.present().await?.1, &time["data"]["wait_ms"]);
            same(number(page, "run-hours").await?, &time["run"]["hours"]);
            same(number(page, "run-cost").await?, &time["run"]["cost"]);
            same(number(page, "run-kwh").await?, &time["run"]["kwh_at_most"]);
            let best = time["data"]["best_workers"].to_string();
            page.text("workers").contains(&best).await?;
            page.text("command").contains("--price-per-hour 2.5").await?;

            page.enter("data", "dekode=3").await?;
            page.text("wrong-data").contains("they are read, decode").await?;
            page.enter("watts", "-1").await?;
            page.text("error-watts").contains("-1").await?;
            Ok(())
        },
    )
    .await;
}

#[tokio::test]
async fn my_card_takes_the_place_of_what_the_program_brings() {
    with_page("#/benchmarks?records=none", async |page| {
        page.find("bench-files").await?.send_keys(RECORD).await?;
        page.find("bench-column").await?;
        page.click("make-mine").await?;
        page.find("my-card").await?;
        page.go("#/?model=gpt2&batch=4&seq=512&gpu=H200").await?;
        come(page).await?;
        page.value("time-basis").holds("my-card").await?;
        page.text("time-basis").contains("NVIDIA H200").await?;
        let flags = ["gpt2", "--batch", "4", "--seq", "512", "--gpu", "H200"];
        let (with_record, without) = (said(&[&flags[..], &["--record", RECORD]].concat()), said(&flags));
        assert_ne!(with_record["time"]["step_ms"], without["time"]["step_ms"]);
        as_said(page, &with_record).await?;

        // It does not apply to another card.
        page.go("#/?model=gpt2&batch=4&seq=512&gpu=RTX%204090").await?;
        come(page).await?;
        page.value("time-basis").holds("data-sheet").await?;
        page.text("other-card").contains("NVIDIA H200").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_page_as_one_file_tells_it_too() {
    let file = built().join(xtask::page::SINGLE_FILE);
    with_browser(&format!("file://{}", file.display()), async |page| {
        page.go("#/?model=gpt2&batch=4&seq=512&gpu=H200").await?;
        come(page).await?;
        as_said(page, &said(&["gpt2", "--batch", "4", "--seq", "512", "--gpu", "H200"])).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_it_and_it_fits_a_phone() {
    with_page(
        "#/?model=gpt2&gpu=RTX%204090&samples=1000&watts=1&data=decode%3D900",
        async |page| {
            for (width, theme, lang) in [(1440, "light", "en"), (390, "dark", "zh-CN"), (390, "light", "zh-TW")] {
                set_width(page, width).await?;
                page.go(&format!(
                    "#/?model=gpt2&gpu=RTX%204090&samples=1000&watts=1&data=decode%3D900&theme={theme}&lang={lang}"
                ))
                .await?;
                come(page).await?;
                page.click_at("[data-testid=time-kernels] summary").await?;
                assert_eq!(
                    findings(page).await?,
                    Vec::<String>::new(),
                    "{theme}, {lang}, {width} px"
                );
                page.click("gpu-ms").await?;
                page.until("the panel", || page.text("told-numbers"), |text| text.contains('+'))
                    .await?;
                assert_eq!(
                    findings(page).await?,
                    Vec::<String>::new(),
                    "open: {theme}, {lang}, {width} px"
                );
                let wide = "return document.documentElement.scrollWidth";
                page.script::<u32>(wide)
                    .named(lang)
                    .until(|wide| *wide <= width)
                    .await?;
            }
            Ok(())
        },
    )
    .await;
}
