//! Tests the way from "out of memory" to a setup that fits, and counts what it takes of a person.

use serde_json::Value;
use thirtyfour::error::WebDriverResult;
use thirtyfour::{By, Key};

use crate::Page;
use crate::page::with_page;

/// Presses of the mouse and of keys so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Effort {
    clicks: usize,
    keys: usize,
}

/// A person at the page, whose presses are counted.
struct Person<'a> {
    page: &'a Page,
    effort: Effort,
}

impl Person<'_> {
    async fn click(&mut self, testid: &str) -> WebDriverResult<()> {
        self.effort.clicks += 1;
        self.page.click(testid).await
    }

    /// Types over what the field holds; selecting it counts as one key.
    async fn type_over(&mut self, testid: &str, text: &str) -> WebDriverResult<()> {
        self.effort.keys += 1 + text.chars().count();
        let field = self.page.find(testid).await?;
        field.send_keys(Key::Control + "a").await?;
        field.send_keys(text).await
    }

    async fn enter(&mut self, testid: &str) -> WebDriverResult<()> {
        self.effort.keys += 1;
        self.page.find(testid).await?.send_keys(Key::Enter + "").await
    }

    /// Opens a menu and picks: two clicks.
    async fn choose(&mut self, testid: &str, value: &str) -> WebDriverResult<()> {
        self.effort.clicks += 2;
        self.page.choose(testid, value).await
    }
}

async fn verdict(page: &Page, wanted: &str) -> WebDriverResult<()> {
    let read = || page.value("verdict");
    page.until("the verdict", read, |v| v.as_deref() == Some(wanted))
        .await?;
    Ok(())
}

/// Qwen2.5-VL-7B, LoRA, 4,096 positions, an image of 1280 by 720, on an RTX 4090: to the verdict, to a plan that fits, and
/// to its launch file.
#[tokio::test]
async fn an_engineers_task_takes_few_presses() {
    with_page("#/", async |page| {
        let mut person = Person {
            page,
            effort: Effort::default(),
        };
        for (testid, text) in [("model", "qwen2.5-vl-7b"), ("gpu", "4090")] {
            person.click(testid).await?;
            person.type_over(testid, text).await?;
            person.enter(testid).await?;
        }
        for (testid, text) in [("seq", "4096"), ("image_sizes", "720x1280")] {
            person.click(testid).await?;
            person.type_over(testid, text).await?;
        }
        person.choose("freeze", "lora").await?;
        verdict(page, "oom").await?;
        let to_verdict = person.effort;
        assert!(
            to_verdict.clicks <= 6 && to_verdict.keys <= 36,
            "to the verdict: {to_verdict:?}"
        );

        person.effort = Effort::default();
        person.click("make-fit").await?;
        page.find("make-fit-setup").await?;
        let nearest: Value = setups(page).await?.remove(0);
        person.click("make-fit-apply").await?;
        verdict(page, "fits").await?;
        assert_eq!(person.effort, Effort { clicks: 2, keys: 0 });

        let stub = "navigator.clipboard.writeText = async (text) => { window.copied = text }";
        page.driver.execute(stub, vec![]).await?;
        person.click("make-fit-copy").await?;
        let copied: String = page
            .driver
            .execute("return window.copied ?? ''", vec![])
            .await?
            .convert()?;
        assert!(copied.contains("per_device_train_batch_size"), "{copied}");

        // What was promised is what the page then says.
        assert_eq!(
            page.value("peak-reserved").await?,
            nearest["peak_reserved"].as_u64().map(|bytes| bytes.to_string())
        );
        Ok(())
    })
    .await;
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
