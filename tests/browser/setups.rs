//! Tests the setups that the browser keeps.

use serde_json::Value;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::{Shown, with_page};
use crate::saved;

fn names(page: &Page) -> Shown<'_, Vec<String>> {
    let script = "return [...document.querySelectorAll('[data-testid=setup-row]')].map(row => row.dataset.name)";
    page.script(script)
}

async fn are(page: &Page, wanted: &[&str]) -> WebDriverResult<()> {
    page.until("the names", || names(page), |now| now == wanted).await?;
    Ok(())
}

#[tokio::test]
async fn a_setup_is_saved_opened_renamed_and_deleted() {
    with_page("#/?model=gpt2&batch=4", async |page| {
        page.click("setups").await?;
        page.enter("setup-name", "tiny").await?;
        page.click("setup-save").await?;
        are(page, &["tiny"]).await?;
        page.enter("batch", "8").await?;
        page.until("the address", || page.fragment(), |at| at.contains("batch=8"))
            .await?;
        // Without a name it has that of its model and card.
        page.click("setup-save").await?;
        are(page, &["gpt2 · H100 SXM", "tiny"]).await?;
        page.click_at("[data-name=tiny] [data-testid=setup-open]").await?;
        page.until("the setup", || page.fragment(), |at| at.contains("batch=4"))
            .await?;
        page.click_at("[data-name=tiny] [data-testid=setup-rename]").await?;
        page.enter("setup-new-name", "smallest").await?;
        page.find("setup-new-name")
            .await?
            .send_keys(thirtyfour::Key::Enter + "")
            .await?;
        are(page, &["gpt2 · H100 SXM", "smallest"]).await?;
        let (name, file) = saved::text(page, "setups-export").await?;
        assert_eq!(name, "vramscope-setups.json");
        let file: Value = serde_json::from_str(&file).expect("JSON");
        assert_eq!(file[1]["name"], "smallest");
        assert_eq!(file[1]["query"], "model=gpt2&batch=4");
        // They outlast a reload.
        page.go("#/?model=llava-1.5-7b").await?;
        page.click("setups").await?;
        are(page, &["gpt2 · H100 SXM", "smallest"]).await?;
        page.click_at("[data-name=smallest] [data-testid=setup-delete]").await?;
        are(page, &["gpt2 · H100 SXM"]).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// What was on screen before, also on an earlier visit, is opened by a press; a number that is typed is one step.
#[tokio::test]
async fn the_latest_setups_are_kept() {
    with_page("#/?model=gpt2", async |page| {
        page.find("peak-allocated").await?;
        for (testid, text, entry) in [("batch", "12", "batch=12"), ("seq", "512", "seq=512")] {
            page.enter(testid, text).await?;
            page.until("the address", || page.fragment(), |at| at.contains(entry))
                .await?;
        }
        page.go("#/?model=llava-1.5-7b").await?;
        page.click("setups").await?;
        let latest = "return [...document.querySelectorAll('[data-testid=setup-latest]')].map(row => row.textContent)";
        let latest = || page.script::<Vec<String>>(latest);
        let all = page.until("the latest", latest, |all| all.len() == 2).await?;
        assert!(all[0].contains("512") && all[1].contains("12"), "{all:?}");
        page.click("setup-latest").await?;
        page.until(
            "the setup",
            || page.fragment(),
            |at| at == "#/?model=gpt2&batch=12&seq=512",
        )
        .await?;
        Ok(())
    })
    .await;
}
