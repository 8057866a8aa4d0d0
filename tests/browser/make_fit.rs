//! Tests the way from "out of memory" to a setup that fits, and the way back.

use serde_json::Value;
use thirtyfour::By;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::with_page;

async fn verdict(page: &Page, wanted: &str) -> WebDriverResult<()> {
    let read = || page.value("verdict");
    page.until("the verdict", read, |v| v.as_deref() == Some(wanted))
        .await?;
    Ok(())
}

/// Setups on offer.
async fn setups(page: &Page) -> WebDriverResult<Vec<Value>> {
    let mut all = Vec::new();
    for element in page.driver.find_all(By::Css("[data-testid='make-fit-setup']")).await? {
        let text = element.attr("data-value").await?.expect("a setup");
        all.push(serde_json::from_str(&text).expect("JSON"));
    }
    Ok(all)
}

/// Each setup on offer keeps the samples of a step, and none beats another in memory and speed and nearness.
#[tokio::test]
async fn what_is_offered_keeps_the_samples_and_differs_in_what_it_is_best_at() {
    with_page(
        "#/?model=llama3.1-8b&gpu=RTX 4090&batch=2&accum=4&freeze=lora",
        async |page| {
            verdict(page, "oom").await?;
            page.click("make-fit").await?;
            page.find("make-fit-setup").await?;
            let setups = setups(page).await?;
            assert!(!setups.is_empty());
            let number = |setup: &Value, key: &str| setup[key].as_f64().expect("a number");
            for setup in &setups {
                assert_eq!(setup["samples"], 8, "{setup}");
                let beaten = setups.iter().any(|other| {
                    let less = ["distance", "peak_reserved"].map(|key| number(other, key) < number(setup, key));
                    less == [true, true] && number(other, "samples_per_s") > number(setup, "samples_per_s")
                });
                assert!(!beaten, "{setup}");
            }
            Ok(())
        },
    )
    .await;
}

/// Where nothing fits, it says so and what remains to be done.
#[tokio::test]
async fn where_nothing_fits_it_says_so() {
    with_page("#/?model=meta-llama/Llama-3.1-405B&gpu=RTX 4060", async |page| {
        page.click("make-fit").await?;
        page.find("make-fit-nothing").await?;
        page.click("make-fit-close").await?;
        page.find("make-fit").await?;
        Ok(())
    })
    .await;
}

/// Back undoes a change, Forward does it again, and a number that is typed is one step.
#[tokio::test]
async fn changes_are_undone_and_done_again() {
    with_page("#/?model=gpt2", async |page| {
        let first = page.value("peak-allocated").await?;
        page.enter("batch", "12").await?;
        let second = page.changed("peak-allocated", &first).await?;
        page.until("the step", || page.fragment(), |at| at.contains("batch=12"))
            .await?;
        page.choose("optim", "sgd").await?;
        let third = page.changed("peak-allocated", &second).await?;
        page.until("the step", || page.fragment(), |at| at.contains("optim=sgd"))
            .await?;
        let is = async |bytes: &Option<String>| {
            let read = || page.value("peak-allocated");
            page.until("the peak", read, |now| now == bytes).await
        };
        page.click("undo").await?;
        page.until("the address", || page.fragment(), |at| !at.contains("optim"))
            .await?;
        page.driver.back().await?;
        is(&first).await?;
        assert_eq!(page.fragment().await?, "#/?model=gpt2");
        page.click("redo").await?;
        page.click("redo").await?;
        is(&third).await?;
        assert_eq!(page.fragment().await?, "#/?model=gpt2&batch=12&optim=sgd");
        Ok(())
    })
    .await;
}

/// Tests that an example shows its setup, and that the introduction stays, so that nothing moves.
#[tokio::test]
async fn an_example_is_one_press() {
    with_page("#/", async |page| {
        page.click("example").await?;
        verdict(page, "oom").await?;
        assert!(
            page.fragment()
                .await?
                .starts_with("#/?model=qwen2.5-vl-7b&gpu=RTX%204090")
        );
        page.find("intro").await?;
        page.go("#/?model=gpt2").await?;
        assert_eq!(page.text("intro").await?, "", "whoever comes with a setup needs none");
        Ok(())
    })
    .await;
}

/// Beside the verdict: how exact it is, from the measured steps of the model's family, and the answer as text.
#[tokio::test]
async fn the_verdict_says_how_exact_it_is_and_is_copied_as_text() {
    with_page("#/?model=qwen2.5-vl-3b&gpu=RTX 4090&freeze=lora", async |page| {
        page.find("peak-allocated").await?;
        page.click("exactness").await?;
        let steps = page
            .until("the steps", || page.value("exactness-told"), Option::is_some)
            .await?;
        let steps: usize = steps.and_then(|n| n.parse().ok()).expect("a number");
        // Of both models of the family that were measured, and of configurations drawn by chance.
        assert!(steps >= 14 + 6, "{steps}");
        let rows = "return document.querySelectorAll('.exactness-rows tbody tr').length";
        let rows: usize = page.driver.execute(rows, vec![]).await?.convert()?;
        assert_eq!(rows, steps);

        let stub = "navigator.clipboard.writeText = async (text) => { window.copied = text }";
        page.driver.execute(stub, vec![]).await?;
        page.click("copy-text").await?;
        let copied: String = page
            .driver
            .execute("return window.copied ?? ''", vec![])
            .await?
            .convert()?;
        let reserved = page.value("peak-reserved").await?.unwrap_or_default();
        let digits: String = copied.chars().filter(char::is_ascii_digit).collect();
        assert!(digits.contains(&reserved), "{copied}");
        for part in ["RTX 4090", "vramscope estimate qwen2.5-vl-3b", "#/?model=qwen2.5-vl-3b"] {
            assert!(copied.contains(part), "{part}: {copied}");
        }
        Ok(())
    })
    .await;
}
