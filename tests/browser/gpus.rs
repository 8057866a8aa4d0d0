//! Tests several GPUs on the plan page.

use std::process::Command;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};
use thirtyfour::error::WebDriverResult;

use crate::page::{Page, Shown, between_settings, with_page};
use crate::same_bytes::{binary, command_line};

const SETUPS: usize = 10;

/// Random setups without their number of GPUs. Some cannot be shared; both sides must then refuse in the same words.
fn cases() -> impl Strategy<Value = Map<String, Value>> {
    let model = select(vec![
        "gpt2",
        "llama3.2-1b",
        "qwen2.5-0.5b",
        "tinyllama-1.1b",
        "tinyllava-1.5b",
        "llava-1.5-7b",
    ]);
    let strategy = select(vec![
        "ddp",
        "ddp_view",
        "zero1",
        "fsdp",
        "fsdp_no_reshard",
        "tensor",
        "pipeline",
        "pipeline_gpipe",
        "deepspeed0",
        "deepspeed1",
        "deepspeed2",
    ]);
    let rest = (
        select(vec!["bf16", "bf16", "amp-bf16"]),
        select(vec!["adamw", "adamw_fused", "sgd"]),
        select(vec!["none", "full"]),
        select(vec!["none", "none", "lora"]),
        select(vec![1u64, 8]),
        select(vec![640u64, 1024]),
    );
    (model, strategy, rest).prop_map(|(model, strategy, (precision, optim, ckpt, freeze, accum, seq))| {
        let offload = if strategy == "deepspeed2" {
            json!("optimizer")
        } else {
            json!(false)
        };
        let case = json!({
            "model": model, "seq": seq, "precision": precision, "optim": optim, "ckpt": ckpt, "freeze": freeze,
            "accum": accum, "strategy": strategy, "offload": offload, "mp": strategy == "fsdp" && precision == "bf16",
        });
        case.as_object().cloned().unwrap_or_default()
    })
}

/// Draws the same setups at each run.
fn draw() -> Vec<Map<String, Value>> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut one = || cases().new_tree(&mut runner).expect("a case can be drawn").current();
    (0..SETUPS).map(|_| one()).collect()
}

fn fragment(case: &Map<String, Value>) -> String {
    let value = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let pairs: Vec<_> = case.iter().map(|(key, v)| format!("{key}={}", value(v))).collect();
    // Without a card, the command line simulates the measured one.
    format!("#/?gpu=H200&{}", pairs.join("&"))
}

/// Text that a script reads from the page.
fn read<'a>(page: &'a Page, script: &str) -> Shown<'a, String> {
    page.script(script)
}

async fn compare(page: &Page, case: &Map<String, Value>, line: &Value) -> WebDriverResult<()> {
    page.go(&fragment(case)).await?;
    if let Some(error) = line.get("error").and_then(Value::as_str) {
        let said = between_settings(error);
        page.until("the refusal", || page.text("refusal"), |text| text.contains(said))
            .await?;
        page.value("peak-allocated").absent().await?;
        return Ok(());
    }
    for (testid, key) in [("peak-allocated", "peak_allocated"), ("peak-reserved", "peak_reserved")] {
        let name = format!("{testid} of {case:?}, which gives {line}");
        page.value(testid).named(&name).holds(&line[key].to_string()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn two_gpus_and_eight_give_the_bytes_of_the_command_line() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let on = |world: u64| {
            draw().into_iter().map(move |mut case| {
                case.insert("world".into(), world.into());
                case
            })
        };
        let cases: Vec<_> = on(2).chain(on(8)).collect();
        let lines = command_line(&cases);
        assert_eq!(lines.len(), cases.len());
        let refused = lines.iter().filter(|line| line.get("error").is_some()).count();
        assert!(
            refused > 0 && refused < lines.len() / 2,
            "{refused} are refused: {lines:?}"
        );
        for (case, line) in cases.iter().zip(&lines) {
            compare(page, case, line).await?;
        }
        Ok(())
    })
    .await;
}

/// The command that the page shows gives the page's bytes, and its verdict of each card.
#[tokio::test]
async fn the_command_carries_the_strategy() {
    let entries = "model=llama3.2-1b&gpu=RTX%204090&batch=2&world=4&strategy=fsdp&mp=true&offload=true&link=25";
    with_page(&format!("#/?{entries}"), async |page| {
        page.value("peak-allocated").present().await?;
        let command = page.text("command").nonempty().await?;
        assert!(
            command.contains("--strategy fsdp --world 4 --mp --offload=true --link 25"),
            "{command}"
        );
        let words = command
            .strip_prefix("vramscope ")
            .expect("it is the program's")
            .replace("vramscope ", "");
        let script = format!("'{}' {words} --format json", binary().display());
        let output = Command::new("sh")
            .args(["-c", &script])
            .output()
            .expect("a shell runs it");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("it writes JSON");
        assert_eq!(answer["parallel"]["strategy"], "fsdp");
        page.value("peak-allocated")
            .holds(&answer["peak_allocated"].to_string())
            .await?;
        let verdict = answer["target"]["verdict"].as_str().map(str::to_owned);
        page.value("verdict").is(verdict).await?;
        page.text("verdict").contains("4 × RTX 4090").await?;
        page.text("of-one").contains("4 GPUs with FSDP2").await?;
        Ok(())
    })
    .await;
}

/// Cards of other numbers show what a run on them shows, and a press takes one.
#[tokio::test]
async fn a_press_takes_another_number_of_gpus() {
    with_page("#/?model=llama3.2-1b&seq=256", async |page| {
        page.value("peak-allocated").present().await?;
        let all = "return performance.getEntriesByType('resource').some((e) => e.name.includes('/chunks/several-'))";
        // A first visit needs none of it.
        page.script::<bool>(all).is(false).await?;
        let see = "document.querySelector('[data-testid=numbers-place]').scrollIntoView()";
        page.run(see).await?;
        let count = "return String(document.querySelectorAll('[data-testid=on-number]').length)";
        page.until("the cards", || read(page, count), |count| count == "4")
            .await?;
        let card = || {
            let script =
                "return document.querySelector(\"[data-testid='on-number'][data-name='4']\").dataset.value ?? null";
            page.script::<Option<String>>(script)
        };
        let needed = card().present().await?;
        page.click_at("[data-testid='on-number'][data-name='4']").await?;
        page.until("the address", || page.fragment(), |text| text.contains("world=4"))
            .await?;
        page.text("of-one").contains("4 GPUs").await?;
        let menu = "return document.querySelector('[data-testid=strategy]')?.value ?? ''";
        page.until("the menu", || read(page, menu), |name| name == "fsdp")
            .await?;
        let taken = "return document.querySelector('[data-testid=on-number][data-name=\"4\"]').ariaPressed";
        page.until("the mark", || read(page, taken), |pressed| pressed == "true")
            .await?;
        card().holds(&needed).await?;
        assert!(page.errors().await?.is_empty());
        Ok(())
    })
    .await;
}

/// Time counts the wait for other GPUs, also under DeepSpeed.
#[tokio::test]
async fn time_counts_communication() {
    with_page("#/?model=gpt2&seq=256&world=2&strategy=ddp&link=1", async |page| {
        let number = |text: String| text.parse::<f64>().expect("milliseconds");
        let exposed = number(page.value("exposed-ms").present().await?);
        let step = number(page.value("step-ms").present().await?);
        assert!(exposed > 0.0 && exposed < step, "{exposed} of {step}");
        page.until(
            "the bottleneck",
            || page.value("bottleneck"),
            |name| name.as_deref() == Some("communication"),
        )
        .await?;
        page.run("location.hash = '#/?model=gpt2&seq=256&world=2&strategy=deepspeed1&link=1'")
            .await?;
        page.until(
            "DeepSpeed's own wait",
            || page.value("exposed-ms"),
            move |text| {
                let waits = text.as_ref().and_then(|text| text.parse::<f64>().ok());
                waits.is_some_and(|waits| waits > 0.0 && waits.to_bits() != exposed.to_bits())
            },
        )
        .await?;
        Ok(())
    })
    .await;
}

/// What FSDP1 reserves depends on the GPU's pace, so its page promises the allocated bytes alone.
#[tokio::test]
async fn the_grade_of_fsdp1_is_of_allocated_bytes() {
    with_page("#/?model=gpt2&seq=256&world=2&strategy=fsdp1", async |page| {
        page.value("grade").holds("allocated").await?;
        page.run("location.hash = '#/?model=gpt2&seq=256&world=2&strategy=fsdp'")
            .await?;
        page.value("grade").holds("exact").await?;
        Ok(())
    })
    .await;
}

/// Pinned beside a run on one GPU, the strategy is told.
#[tokio::test]
async fn a_comparison_tells_the_strategy() {
    with_page("#/?model=gpt2&seq=256&world=2", async |page| {
        page.value("peak-allocated").present().await?;
        page.click("pin").await?;
        page.until("the address", || page.fragment(), |text| text.contains("compare="))
            .await?;
        let one = "location.hash = location.hash.replace('world=2&', '')";
        page.run(one).await?;
        let rows =
            "return [...document.querySelectorAll('[data-testid=compare-key]')].map((row) => row.innerText).join()";
        let is_told = |rows: &String| rows.contains("FSDP2") && rows.contains('—');
        page.until("the rows", || read(page, rows), is_told).await?;
        Ok(())
    })
    .await;
}
