//! Tests the way from "out of memory" to a setup that fits, and the way back.

use serde_json::Value;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::{Shown, with_page};

async fn verdict(page: &Page, wanted: &str) -> WebDriverResult<()> {
    let read = || page.value("verdict");
    page.until("the verdict", read, |v| v.as_deref() == Some(wanted))
        .await?;
    Ok(())
}

/// Setups on offer.
fn setups(page: &Page) -> Shown<'_, Vec<Value>> {
    let script = "return [...document.querySelectorAll('[data-testid=make-fit-setup]')].map((one) => JSON.parse(one.dataset.value))";
    page.script(script).named("the setups")
}

/// Each setup on offer keeps the samples of a step, and none beats another in memory and speed and nearness.
#[tokio::test]
async fn what_is_offered_keeps_the_samples_and_differs_in_what_it_is_best_at() {
    with_page(
        "#/?model=llama3.1-8b&gpu=RTX 4090&batch=2&accum=4&freeze=lora",
        async |page| {
            verdict(page, "oom").await?;
            page.click("make-fit").await?;
            let setups = setups(page).until(|setups| !setups.is_empty()).await?;
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

/// What a setup on offer promises, the page says of it once it is applied: in words and to the byte.
#[tokio::test]
async fn each_setup_on_offer_keeps_its_promise() {
    let pages = [
        "#/?model=llama3.1-8b&gpu=RTX 4090&batch=2&accum=4&freeze=lora",
        "#/?model=qwen2.5-vl-7b&gpu=RTX 4090&seq=4096&freeze=lora",
        "#/?model=qwen3-vl-4b&gpu=RTX 4090&batch=2",
    ];
    with_page("#/?model=llava-1.5-7b", async |page| {
        for fragment in pages {
            page.go(fragment).await?;
            page.click("make-fit").await?;
            let offered = setups(page).until(|setups| !setups.is_empty()).await?;
            // Two that look alike in speed and memory are no choice.
            let looks = |setup: &Value| {
                let [rate, bytes] =
                    ["samples_per_s", "peak_reserved"].map(|key| setup[key].as_f64().unwrap_or_default());
                format!("{rate:.2} {:.2}", bytes / f64::from(1 << 30))
            };
            let mut different: Vec<String> = offered.iter().map(looks).collect();
            different.dedup();
            assert_eq!(different.len(), offered.len(), "{fragment}: {offered:?}");
            for (i, setup) in offered.iter().enumerate() {
                let card = format!("[data-testid=make-fit-setup]:nth-child({})", i + 1);
                let promise = page.text_at(&format!("{card} > p")).nonempty().await?;
                let (needed, _) = promise.split_once(" of ").expect("memory of the card");
                page.click_at(&format!("{card} [data-testid=make-fit-apply]")).await?;
                page.value("peak-reserved")
                    .holds(&setup["peak_reserved"].to_string())
                    .await?;
                page.text("verdict").contains(needed).await?;
            }
        }
        Ok(())
    })
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
        let first = page.value("peak-allocated").present().await?;
        page.enter("batch", "12").await?;
        let second = page.changed("peak-allocated", &first).await?;
        page.until("the step", || page.fragment(), |at| at.contains("batch=12"))
            .await?;
        page.choose("optim", "sgd").await?;
        let third = page.changed("peak-allocated", &second).await?;
        page.until("the step", || page.fragment(), |at| at.contains("optim=sgd"))
            .await?;
        let is = async |bytes: &str| page.value("peak-allocated").holds(bytes).await;
        page.click("undo").await?;
        page.until("the address", || page.fragment(), |at| !at.contains("optim"))
            .await?;
        page.back().await?;
        is(&first).await?;
        page.fragment().is("#/?model=gpt2").await?;
        page.click("redo").await?;
        page.click("redo").await?;
        is(&third).await?;
        page.fragment().is("#/?model=gpt2&batch=12&optim=sgd").await?;
        Ok(())
    })
    .await;
}

/// Tests that an example shows its setup, and that the introduction stays, so that nothing moves.
#[tokio::test]
async fn an_example_is_one_press() {
    with_page("", async |page| {
        page.click("example").await?;
        verdict(page, "oom").await?;
        let example = "#/?model=qwen2.5-vl-7b&gpu=RTX%204090";
        page.fragment().until(|at| at.starts_with(example)).await?;
        page.find("intro").await?;
        page.go("#/?model=gpt2").await?;
        page.find("intake").await?;
        let examples = "return document.querySelectorAll('[data-testid=example]').length";
        page.script::<usize>(examples).is(0).await?;
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
        let steps = page.value("exactness-told").present().await?;
        let steps: usize = steps.parse().expect("a number");
        // Of both models of the family that were measured, and of configurations drawn at random.
        assert!(steps >= 14 + 6, "{steps}");
        let rows = "return document.querySelectorAll('.exactness-rows tbody tr').length";
        page.script::<usize>(rows).is(steps).await?;

        let stub = "navigator.clipboard.writeText = async (text) => { window.copied = text }";
        page.run(stub).await?;
        page.click("copy-text").await?;
        let copied = page.script::<String>("return window.copied ?? ''").nonempty().await?;
        let reserved = page.value("peak-reserved").present().await?;
        let digits: String = copied.chars().filter(char::is_ascii_digit).collect();
        assert!(digits.contains(&reserved), "{copied}");
        for part in ["RTX 4090", "vramscope estimate qwen2.5-vl-3b", "#/?model=qwen2.5-vl-3b"] {
            assert!(copied.contains(part), "{part}: {copied}");
        }
        Ok(())
    })
    .await;
}
