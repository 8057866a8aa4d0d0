//! Tests the sweeps of the plan page.

use std::process::Command;

use serde_json::Value;
use vramscope_engine::device::Device;
use vramscope_engine::verdict::{Fit, Room};
use vramscope_engine::{Model, Setup, simulate_on};

use crate::Page;
use crate::page::{Shown, with_page};
use crate::same_bytes::binary;
use crate::saved;
use thirtyfour::error::WebDriverResult;

/// Scrolls to the sweep and waits until it is complete.
async fn finished(page: &Page) -> WebDriverResult<()> {
    page.see("sweep-place").await?;
    page.find("sweep-chart").await?;
    let rows = "return document.querySelectorAll('[data-testid=largest-row]').length";
    let rows = || page.script::<usize>(rows);
    page.until("rows", rows, |n| *n > 0).await?;
    page.until(
        "sweep-state",
        || page.value("sweep-state"),
        |v| v.as_deref() == Some("done"),
    )
    .await?;
    Ok(())
}

/// Largest value for a card, as the page shows it.
fn largest<'a>(page: &'a Page, card: &str) -> Shown<'a, u64> {
    let script =
        "return document.querySelector(`[data-testid=largest-row][data-name='${arguments[0]}']`).dataset.value";
    let value = page.script_with::<String>(script, vec![card.into()]).named(card);
    value.map(|value| value.parse().expect("a number"))
}

fn needs(batch: u64, card: &Device) -> u64 {
    let model = Model::from_catalogue("gpt2").expect("it is in the catalogue");
    let setup = Setup {
        batch,
        seq: 1024,
        ..Setup::default()
    };
    let report = simulate_on(&model, &setup, card.gpu().unwrap_or_default()).expect("it runs");
    Fit::of(&report, Room::Card(card)).needed.get()
}

#[tokio::test]
async fn the_largest_batch_is_the_engines() {
    with_page("#/?model=gpt2&seq=1024&gpu=RTX%204070&cards=RTX%204090", async |page| {
        finished(page).await?;
        for name in ["RTX 4070", "RTX 4090"] {
            let card = Device::by_name(name).expect("it is known");
            let found = largest(page, name).until(|found| *found > 0).await?;
            assert!(needs(found, card) <= card.usable().get(), "{found} fits {name}");
            assert!(
                needs(found + 1, card) > card.usable().get(),
                "{} does not fit {name}",
                found + 1
            );
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_the_model_decides_by_itself_is_swept_from_there() {
    with_page("#/?model=vit-large&sweep=image&gpu=RTX%204070", async |page| {
        finished(page).await?;
        page.value("sweep-here").holds("224").await?;
        let peak = page.value("peak-allocated").present().await?;
        page.value("sweep-allocated").holds(&peak).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_curve_passes_through_the_run_of_the_page() {
    with_page("#/?model=gpt2&seq=512&batch=4&sweep=seq&gpu=RTX%204070", async |page| {
        finished(page).await?;
        page.value("sweep-here").holds("512").await?;
        let peak = page.value("peak-allocated").present().await?;
        page.value("sweep-allocated").holds(&peak).await?;
        let (name, csv) = saved::text(page, "sweep-chart-csv").await?;
        assert_eq!(name, "gpt2-b4-s512-sweep.csv");
        let needed = page.value("sweep-needed").present().await?;
        assert!(
            csv.lines().any(|line| line.starts_with(&format!("512,{needed},"))),
            "{csv}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_last_curve_stays_until_a_new_one_is_there() {
    with_page("#/?model=gpt2&seq=512&gpu=RTX%204070", async |page| {
        finished(page).await?;
        let before = largest(page, "RTX 4070").until(|found| *found > 0).await?;
        page.enter("seq", "1024").await?;
        let after = largest(page, "RTX 4070").until(|now| *now != before).await?;
        assert!(after > 0 && after < before, "{after}, was {before}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn only_what_the_model_takes_can_be_varied() {
    with_page("#/?model=videomae-base", async |page| {
        page.see("sweep-place").await?;
        page.find("sweep").await?;
        let options = "return [...document.querySelectorAll('[data-testid=sweep] option')].map(o => o.value)";
        page.script::<Vec<String>>(options)
            .is(["batch", "image", "frames"])
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_largest_micro_batch_is_the_command_lines() {
    with_page("#/?model=gpt2&gpu=RTX 4060&seq=1024", async |page| {
        page.see("sweep-place").await?;
        let batch = page.value("largest-batch").present().await?;
        let args = [
            "max-batch",
            "gpt2",
            "--gpu",
            "RTX 4060",
            "--seq",
            "1024",
            "--format",
            "json",
        ];
        let output = Command::new(binary())
            .args(args)
            .output()
            .expect("the command line runs");
        let wanted: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        assert_eq!(batch, wanted["max_batch"].to_string());
        let next = page.text("largest-batch-next").nonempty().await?;
        let stopped = wanted["max_batch"]
            .as_u64()
            .map(|batch| format!("A micro-batch of {} runs out", batch + 1));
        assert!(next.starts_with(&stopped.expect("a number")), "{next}");
        // A lower limit leads to a smaller batch, which one click applies.
        page.click_at("details:has([data-testid=limit_gib]) summary").await?;
        page.enter("limit_gib", "5").await?;
        let less = page.changed("largest-batch", &batch).await?;
        page.click("largest-batch-use").await?;
        page.until(
            "batch",
            || page.fragment(),
            |now| now.contains(&format!("batch={less}")),
        )
        .await?;
        page.until(
            "it fits",
            || page.value("verdict"),
            |verdict| verdict.as_deref() != Some("oom"),
        )
        .await?;
        page.choose("language", "zh-TW").await?;
        page.text("largest-batch").contains("放得下").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}
