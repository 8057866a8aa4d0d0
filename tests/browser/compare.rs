//! Tests the comparison of pinned setups.

use serde_json::{Value, json};
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::{Shown, with_page};
use crate::same_bytes::command_line;

/// Names of the compared setups, each with the memory it needs.
fn columns(page: &Page) -> Shown<'_, Vec<(String, Option<String>)>> {
    let script = "return [...document.querySelectorAll('[data-testid=compare-needed]')]\
                  .map(cell => [cell.dataset.name, cell.dataset.value ?? null])";
    page.script(script)
}

/// Memory of each of so many compared setups; `None` until all are simulated.
fn needed(page: &Page, count: usize) -> Shown<'_, Option<Vec<String>>> {
    columns(page).named("the setups").map(move |all| {
        let needed: Option<Vec<String>> = all.into_iter().map(|(_, needed)| needed).collect();
        needed.filter(|needed| needed.len() == count)
    })
}

/// Bytes that the command line computes for each batch.
fn expected(batches: &[u64]) -> Vec<String> {
    let cases: Vec<_> = batches
        .iter()
        .filter_map(|batch| json!({ "model": "gpt2", "batch": batch }).as_object().cloned())
        .collect();
    let bytes = |line: &Value, key: &str| line[key].as_u64().expect("it runs");
    let lines = command_line(&cases);
    lines
        .iter()
        .map(|line| (bytes(line, "peak_reserved") + bytes(line, "outside_torch")).to_string())
        .collect()
}

async fn press(page: &Page, testid: &str) -> WebDriverResult<()> {
    page.click(testid).await
}

#[tokio::test]
async fn pinned_setups_stand_beside_the_editor_and_in_the_link() {
    with_page("#/?model=gpt2&gpu=H200&batch=2", async |page| {
        press(page, "pin").await?;
        needed(page, 2).present().await?;
        page.enter("batch", "4").await?;
        let wanted = expected(&[2, 4]);
        needed(page, 2).is(Some(wanted)).await?;
        press(page, "pin").await?;
        page.enter("batch", "3").await?;
        let wanted = expected(&[2, 4, 3]);
        needed(page, 3).is(Some(wanted)).await?;
        // The link alone restores everything.
        let fragment = page.fragment().contains("batch=3").await?;
        page.go(&fragment).await?;
        needed(page, 3).is(Some(expected(&[2, 4, 3]))).await?;
        let marked = "return [...document.querySelectorAll('[data-testid=compare-key]')].map(row =>\
                      row.dataset.name + ':' + row.querySelectorAll('.compare-marked').length)";
        page.script::<Vec<String>>(marked).is(["batch:2"]).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pinned_setup_changes_places_with_the_editor_and_can_be_removed() {
    with_page("#/?model=gpt2&gpu=H200&batch=2", async |page| {
        press(page, "pin").await?;
        page.enter("batch", "4").await?;
        let wanted = expected(&[2, 4]);
        needed(page, 2).is(Some(wanted)).await?;
        press(page, "compare-swap").await?;
        let wanted = expected(&[4, 2]);
        needed(page, 2).is(Some(wanted)).await?;
        page.prop("batch", "value").holds("2").await?;
        press(page, "compare-remove").await?;
        page.until("none", || columns(page), Vec::is_empty).await?;
        page.fragment().lacks("compare").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn garbled_pins_are_named_and_the_rest_is_kept() {
    // The base64 of `nonsense`.
    with_page("#/?model=gpt2&compare=bm9uc2Vuc2U", async |page| {
        let message = page
            .until("a message", || page.text("error-compare"), |m| !m.is_empty())
            .await?;
        assert!(message.contains("nonsense"), "{message}");
        page.value("peak-allocated").present().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_setup_that_does_not_train_stands_beside_one_that_does() {
    with_page("#/?model=qwen2.5-0.5b&gpu=H200&seq=256&phase=evaluate", async |page| {
        let evaluated = page.value("peak-reserved").present().await?;
        press(page, "pin").await?;
        let both = page.fragment().contains("compare=").await?;
        page.go(&both.replace("&phase=evaluate", "")).await?;
        let both = needed(page, 2).present().await?;
        let bytes = |text: &str| text.parse::<u64>().expect("bytes");
        assert!(bytes(&both[0]) < bytes(&both[1]), "training holds more: {both:?}");
        let outside = page.value("outside-torch").present().await?;
        assert_eq!(bytes(&both[0]), bytes(&evaluated) + bytes(&outside));
        let rows = "return [...document.querySelectorAll('[data-testid=compare-key]')].map(row => row.dataset.name)";
        page.script::<Vec<String>>(rows).is(["phase"]).await?;
        Ok(())
    })
    .await;
}
