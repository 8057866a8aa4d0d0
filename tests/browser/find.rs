//! Tests the list of names: what is typed leads to a setting, a choice, a page or a number.

use serde_json::json;
use thirtyfour::Key;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::with_page;

/// Opens the list by its keys, types and takes the first row.
async fn finds(page: &Page, typed: &str, first: &str) -> WebDriverResult<()> {
    page.keys_with(Key::Control, "k").await?;
    page.find("find-field").await?;
    page.until("focus", || page.script::<String>(FOCUS), |id| id == "find-field")
        .await?;
    page.keys(typed).await?;
    page.attr("find-row", "data-name").holds(first).await?;
    page.keys(Key::Enter).await?;
    page.attr("find-dialog", "open").absent().await
}

/// Test id of what has the focus.
const FOCUS: &str = "return document.activeElement?.dataset?.testid ?? ''";

#[tokio::test]
async fn names_lead_to_settings_choices_pages_and_numbers() {
    with_page("#/?model=gpt2", async |page| {
        finds(page, "clip", "entry:clip").await?;
        page.until("focus", || page.script::<String>(FOCUS), |id| id == "clip")
            .await?;
        finds(page, "zero stage 3", "choice:strategy=deepspeed3").await?;
        page.fragment().contains("strategy=deepspeed3").await?;
        page.fragment().contains("world=2").await?;
        page.find("gpu-picture").await?;
        finds(page, "peak alloc", "number:peak-allocated").await?;
        page.until("focus", || page.script::<String>(FOCUS), |id| id == "peak-allocated")
            .await?;
        finds(page, "diag", "page:diagnose").await?;
        page.fragment().contains("/diagnose").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// A press beside the list, or Escape, closes it; what is not found says so.
#[tokio::test]
async fn the_list_closes_and_says_that_nothing_is_found() {
    with_page("#/?model=gpt2", async |page| {
        page.click("find").await?;
        page.find("find-field").await?;
        page.until("focus", || page.script::<String>(FOCUS), |id| id == "find-field")
            .await?;
        page.keys("xyzzy").await?;
        page.text("find-dialog").nonempty().await?;
        page.attr("find-row", "data-name").absent().await?;
        page.keys(Key::Escape).await?;
        page.attr("find-dialog", "open").absent().await?;
        Ok(())
    })
    .await;
}

/// On paper stand all settings that apply, also those that are as they are by default.
#[tokio::test]
async fn paper_has_the_whole_setup() {
    with_page("#/?model=gpt2&seq=512&clip=true", async |page| {
        page.devtools("Emulation.setEmulatedMedia", json!({"media": "print"}))
            .await?;
        let text = page.text("printed").until(|text| text.contains("512")).await?;
        for words in ["gpt2", "AdamW", "H100"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        page.devtools("Emulation.setEmulatedMedia", json!({"media": "screen"}))
            .await?;
        Ok(())
    })
    .await;
}
