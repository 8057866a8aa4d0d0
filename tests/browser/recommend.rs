//! Tests the recommendations page: the search reports progress and ends, and its result equals the command line's.

use std::process::Command;

use serde_json::Value;
use thirtyfour::error::WebDriverResult;
use vramscope_plan::export::ExportFormat;

use crate::Page;
use crate::page::{Shown, with_page};
use crate::same_bytes::binary;

/// Two images of 1280 × 720 on 24 GB, with every entry open: 100,800 setups.
const MANY: &str = "#/recommend?model=qwen2.5-vl-7b&gpu=RTX 4090&seq=3072&images=2&image_sizes=720x1280&effective=64\
                    &open=precision,optim,ckpt,attn,freeze,loss,batch,resolution,images,offload";
const SMALL: &str = "#/recommend?model=gpt2&gpu=RTX 4060&seq=512&effective=16";

fn command_line(args: &[&str]) -> Value {
    let output = Command::new(binary())
        .arg("plan")
        .args(args)
        .args(["--format", "json"])
        .output()
        .expect("the command line runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

async fn search(page: &Page) -> WebDriverResult<()> {
    page.click("plan-go").await?;
    let done = || page.value("plan-status");
    page.until("told", done, |now| now.as_deref() == Some("true")).await?;
    page.until("done", done, |now| now.as_deref() == Some("false")).await?;
    Ok(())
}

/// Exact values of all elements with a test id.
fn values<'a>(page: &'a Page, testid: &str) -> Shown<'a, Vec<Option<String>>> {
    let script = "return [...document.querySelectorAll(arguments[0])].map((at) => at.dataset.value ?? null)";
    let selector = format!("[data-testid='{testid}']").into();
    page.script_with(script, vec![selector])
}

#[tokio::test]
async fn a_hundred_thousand_setups_say_how_far_they_are_and_can_be_ended() {
    with_page(MANY, async |page| {
        // In the page itself: on a busy machine the search can end between two commands of the browser's driver.
        let script = "const told = arguments[0];
            document.querySelector('[data-testid=plan-go]').click();
            const wait = setInterval(() => {
                const at = document.querySelector('[data-testid=plan-progress]');
                if (!at || !(at.dataset.value > 0)) return;
                clearInterval(wait);
                const of = at.querySelector('progress').max;
                document.querySelector('[data-testid=plan-stop]').click();
                told(of);
            }, 5);";
        let all: f64 = page.promise(script, vec![]).await?;
        assert_eq!(all, 100_800.0);
        page.until(
            "it ends",
            || page.value("plan-status"),
            |now| now.as_deref() == Some("false"),
        )
        .await?;
        // Nothing more is told.
        page.value("plan-ladder").absent().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_plan_is_the_command_lines() {
    with_page(SMALL, async |page| {
        search(page).await?;
        let wanted = command_line(&["gpt2", "--gpu", "RTX 4060", "--seq", "512", "--effective", "16"]);
        let shown = page.value("plan-recommended").present().await?;
        let shown: Value = serde_json::from_str(&shown).expect("it is JSON");
        assert_eq!(shown, wanted["recommended"]);
        let bytes = |list: &Value, key: &str| -> Vec<Option<String>> {
            let list = list.as_array().expect("a list");
            list.iter()
                .map(|one| one[key].as_u64().map(|n| n.to_string()))
                .collect()
        };
        let front = bytes(&wanted["front"], "peak_reserved");
        values(page, "plan-front-row").is(front).await?;
        let reasons = wanted["reasons"].as_array().expect("a list").len();
        values(page, "plan-reason")
            .until(|shown| shown.len() == reasons)
            .await?;
        let setups = wanted["searched"]["setups"].to_string();
        page.value("plan-searched").holds(&setups).await?;
        // The link opens the planner with the recommended setup.
        page.click("plan-open").await?;
        let verdict = page.value("verdict").present().await?;
        assert!(matches!(verdict.as_str(), "fits" | "tight"), "{verdict}");
        let optim = wanted["recommended"]["setup"]["optim"].as_str().expect("it has one");
        page.fragment().contains(optim).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_fits_nowhere_has_a_nearest_and_a_ladder() {
    with_page(
        "#/recommend?model=llava-1.5-7b&gpu=RTX 4060&seq=1024&effective=4&open=ckpt,batch",
        async |page| {
            search(page).await?;
            let args = ["llava-1.5-7b", "--gpu", "RTX 4060", "--seq", "1024", "--effective", "4"];
            let kept = ["--keep", "precision,optim,attn,freeze,loss"];
            let wanted = command_line(&[&args[..], &kept].concat());
            let short = wanted["nearest"]["short"].as_u64().expect("it is too large");
            page.value("plan-nearest").holds(&short.to_string()).await?;
            let rungs = wanted["ladder"].as_array().expect("a ladder").iter();
            let peaks: Vec<_> = rungs.map(|rung| rung["peak"].as_u64().map(|n| n.to_string())).collect();
            values(page, "plan-rung").is(peaks).await?;
            page.value("plan-recommended").absent().await?;
            Ok(())
        },
    )
    .await;
}

#[tokio::test]
async fn every_export_is_written_or_says_why_not() {
    with_page(SMALL, async |page| {
        search(page).await?;
        let options = "return [...document.querySelector('[data-testid=plan-form]').options].map((one) => one.value)";
        let is_whole = |forms: &Vec<String>| forms.len() == ExportFormat::ALL.len();
        let forms = page.script::<Vec<String>>(options).until(is_whole).await?;
        let mut texts = Vec::new();
        for form in &forms {
            page.choose("plan-form", form).await?;
            let text = || {
                let script = "return ['plan-export', 'plan-export-refused']
                    .map((id) => document.querySelector(`[data-testid=${id}]`)?.textContent ?? '').join('')";
                page.script::<String>(script)
            };
            let before = texts.clone();
            texts.push(
                page.until(form, text, |text| !text.is_empty() && !before.contains(text))
                    .await?,
            );
        }
        assert!(texts.iter().any(|text| text.contains("train_micro_batch_size_per_gpu")));
        assert!(texts.iter().any(|text| text.contains("TrainingArguments(")));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_may_change_is_in_the_link_and_ready_plans_stand_below() {
    with_page("#/recommend?model=gpt2", async |page| {
        page.click("open-optim").await?;
        page.until("link", || page.fragment(), |now| now.contains("open=precision%2Cckpt"))
            .await?;
        page.click("open-optim").await?;
        page.until("link", || page.fragment(), |now| !now.contains("open="))
            .await?;
        let ready = || values(page, "ready-plan");
        let all = page.until("ready plans", ready, |all| !all.is_empty()).await?;
        assert_eq!(all.len(), 48);
        page.find("course-cards").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_plan_is_first_shown_for_a_tool_that_takes_it() {
    // The search recommends FSDP2, which accelerate's configuration expresses, and DeepSpeed's as its stage 3.
    const SHARED: &str = "#/recommend?model=qwen2.5-1.5b&gpu=RTX 4090&gpus=4&seq=1024&effective=16";
    with_page(SHARED, async |page| {
        search(page).await?;
        let export = || page.text("plan-export");
        page.until("the export", export, |text| text.contains("distributed_type: FSDP"))
            .await?;
        let chosen = "return document.querySelector('[data-testid=plan-form]').value";
        page.script::<String>(chosen)
            .is(ExportFormat::Accelerate.name())
            .await?;
        page.choose("plan-form", ExportFormat::Deepspeed.name()).await?;
        page.until("the other export", export, |text| text.contains(r#""stage": 3"#))
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_makes_no_question_is_said_in_the_persons_language() {
    with_page("#/recommend?model=gpt2&gpus=2&effective=3", async |page| {
        page.click("plan-go").await?;
        let said = || page.text("plan-refused");
        page.until("English", said, |text| text.contains("3 samples per step (GPUs: 2"))
            .await?;
        page.choose("language", "zh-CN").await?;
        page.until("Chinese", said, |text| text.contains("每步 3 个样本"))
            .await?;
        Ok(())
    })
    .await;
}
