//! Tests what the page tells of a dataset that is dropped or opened.

use serde_json::json;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::{Shown, with_page};
use crate::recorded::drop_bytes;

/// A hundred conversations, of 4, 8, … 400 bytes, each with an image that grows too.
fn conversations() -> Vec<u8> {
    let line = |n: usize| {
        let text = "abcd".repeat(n);
        let record = json!({ "conversations": [{ "from": "human", "value": text }], "width": 28 * n, "height": 56 });
        format!("{record}\n")
    };
    (1..=100).map(line).collect::<String>().into_bytes()
}

fn length<'a>(page: &'a Page, name: &str) -> Shown<'a, Option<u64>> {
    let script = "return document.querySelector(`[data-testid=dataset-length][data-name='${arguments[0]}']`)?.dataset.value ?? null";
    let value = page
        .script_with::<Option<String>>(script, vec![name.into()])
        .named(name);
    value.map(|text| text?.parse().ok())
}

async fn press(page: &Page, name: &str) -> WebDriverResult<()> {
    page.click_at(&format!("[data-testid=dataset-use][data-name='{name}']"))
        .await
}

/// Text is estimated by its bytes, images are counted as the model counts them, and a press takes both.
#[tokio::test]
async fn lengths_and_sizes_of_a_dropped_file_become_those_of_the_setup() {
    with_page("#/?model=qwen2.5-vl-3b&gpu=H200&batch=4", async |page| {
        page.find("peak-allocated").await?;
        drop_bytes(page, ".plan", "train.jsonl", &conversations()).await?;
        page.until(
            "the samples",
            || page.value("dataset-count"),
            |n| n.as_deref() == Some("100"),
        )
        .await?;
        // The hundredth: 100 tokens of text; 2800 by 56 pixels are 200 by 4 patches, of which 4 become a token,
        // between a token that begins the image and one that ends it.
        let read = || length(page, "max");
        page.until("the longest", read, |n| *n == Some(100 + 202)).await?;
        length(page, "p50").is(Some(50 + 102)).await?;
        press(page, "p50").await?;
        let address = || page.fragment();
        let both = |at: &String| at.contains("seq=152") && at.contains("image_sizes=56x1400");
        page.until("the entries", address, both).await?;
        page.text("dataset").contains("% of the tokens are padding").await?;
        page.click("dataset-worst").await?;
        let worst = |at: &String| at.contains("lengths=302%2C%20299%2C%20296%2C%20293");
        page.until("the worst batch", address, worst).await?;
        // A press undoes it, as any other change.
        page.click("undo").await?;
        page.until("the entries before", address, |at| !at.contains("lengths"))
            .await?;
        page.click("dataset-close").await?;
        page.text("dataset").is("").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// A model of text alone counts no images, and a column of tokens is taken as it is.
#[tokio::test]
async fn a_column_of_tokens_is_no_estimate() {
    with_page("#/?model=gpt2", async |page| {
        page.find("peak-allocated").await?;
        let file = "text,num_tokens\n\"a, b\",10\nc,30\n";
        drop_bytes(page, ".plan", "lengths.csv", file.as_bytes()).await?;
        page.until("the longest", || length(page, "max"), |n| *n == Some(30))
            .await?;
        // Nothing is estimated.
        let ratio = "return document.querySelectorAll('[data-testid=dataset-ratio]').length";
        page.script::<usize>(ratio).is(0_usize).await?;
        Ok(())
    })
    .await;
}

/// The ratio of an estimate can be changed, and what cannot be read is said.
#[tokio::test]
async fn an_estimate_can_be_corrected_and_a_wrong_file_is_refused() {
    with_page("#/?model=gpt2", async |page| {
        page.find("peak-allocated").await?;
        drop_bytes(page, ".plan", "train.jsonl", &conversations()).await?;
        page.until("the longest", || length(page, "max"), |n| *n == Some(100))
            .await?;
        page.enter("dataset-ratio", "2").await?;
        page.until("the longest", || length(page, "max"), |n| *n == Some(200))
            .await?;
        for (text, word) in [("{\"id\": 7}", "id"), ("PAR1", "JSONL"), ("", "no records")] {
            drop_bytes(page, ".plan", "other.jsonl", text.as_bytes()).await?;
            page.until("why", || page.text("dataset-wrong"), |why| why.contains(word))
                .await?;
        }
        Ok(())
    })
    .await;
}
