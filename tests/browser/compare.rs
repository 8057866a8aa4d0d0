//! Tests the comparison of pinned setups.

use serde_json::{Value, json};
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::with_page;
use crate::same_bytes::command_line;

/// Names of the compared setups, each with the memory it needs.
async fn columns(page: &Page) -> WebDriverResult<Vec<(String, Option<String>)>> {
    let script = "return [...document.querySelectorAll('[data-testid=compare-needed]')]\
                  .map(cell => [cell.dataset.name, cell.dataset.value ?? null])";
    page.driver.execute(script, vec![]).await?.convert()
}

/// Memory of each compared setup, once all are simulated.
async fn needed(page: &Page, count: usize) -> WebDriverResult<Vec<String>> {
    let whole = |all: &Vec<(String, Option<String>)>| all.len() == count && all.iter().all(|(_, n)| n.is_some());
    let all = page.until("setups", || columns(page), whole).await?;
    Ok(all.into_iter().filter_map(|(_, needed)| needed).collect())
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
        needed(page, 2).await?;
        page.enter("batch", "4").await?;
        let wanted = expected(&[2, 4]);
        page.until("the editor's", || needed(page, 2), |now| *now == wanted)
            .await?;
        press(page, "pin").await?;
        page.enter("batch", "3").await?;
        let wanted = expected(&[2, 4, 3]);
        page.until("the editor's", || needed(page, 3), |now| *now == wanted)
            .await?;
        // The link alone restores everything.
        let fragment = page.fragment().await?;
        page.go(&fragment).await?;
        assert_eq!(needed(page, 3).await?, wanted);
        let marked = "return [...document.querySelectorAll('[data-testid=compare-key]')].map(row =>\
                      row.dataset.name + ':' + row.querySelectorAll('.compare-marked').length)";
        let marked: Vec<String> = page.driver.execute(marked, vec![]).await?.convert()?;
        assert_eq!(marked, ["batch:2"]);
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
        page.until("both", || needed(page, 2), |now| *now == wanted).await?;
        press(page, "compare-swap").await?;
        let wanted = expected(&[4, 2]);
        page.until("exchanged", || needed(page, 2), |now| *now == wanted)
            .await?;
        assert_eq!(page.find("batch").await?.prop("value").await?.as_deref(), Some("2"));
        press(page, "compare-remove").await?;
        page.until("none", || columns(page), Vec::is_empty).await?;
        assert!(!page.fragment().await?.contains("compare"));
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
        assert!(page.value("peak-allocated").await?.is_some());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_setup_that_does_not_train_stands_beside_one_that_does() {
    with_page("#/?model=qwen2.5-0.5b&gpu=H200&seq=256&phase=evaluate", async |page| {
        let evaluated = page
            .until("the peak", || page.value("peak-reserved"), Option::is_some)
            .await?;
        press(page, "pin").await?;
        page.go(&page.fragment().await?.replace("&phase=evaluate", "")).await?;
        let both = needed(page, 2).await?;
        let bytes = |text: &str| text.parse::<u64>().expect("bytes");
        assert!(bytes(&both[0]) < bytes(&both[1]), "training holds more: {both:?}");
        let outside = page.value("outside-torch").await?.expect("a card is chosen");
        let evaluated = evaluated.expect("it is there");
        assert_eq!(bytes(&both[0]), bytes(&evaluated) + bytes(&outside));
        let rows = "return [...document.querySelectorAll('[data-testid=compare-key]')].map(row => row.dataset.name)";
        let rows: Vec<String> = page.driver.execute(rows, vec![]).await?.convert()?;
        assert_eq!(rows, ["phase"]);
        Ok(())
    })
    .await;
}
