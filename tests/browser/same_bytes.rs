//! Tests that the page and the command line compute the same bytes for the same input.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::Page;
use crate::page::{between_settings, with_page};
use thirtyfour::error::WebDriverResult;

const SETUPS: usize = 10;

/// Random setups of text and vision-language models. Some cannot run; both must then refuse.
fn cases() -> impl Strategy<Value = Map<String, Value>> {
    let model = select(vec![
        "gpt2",
        "gpt2-medium",
        "llama3.2-1b",
        "qwen2.5-0.5b",
        "tinyllava-1.5b",
        "llava-1.5-7b",
    ]);
    let sizes = (1..5u64, select(vec![256u64, 640, 1000, 1024]), 1..3u64, 1..3u64);
    let numbers = select(vec!["fp32", "bf16", "amp-bf16", "amp-fp16"]);
    let optim = select(vec!["adamw", "adamw_fused", "adamw_loop", "sgd", "sgdm", "adamw_8bit"]);
    let rest = (
        select(vec!["none", "full"]),
        select(vec!["sdpa", "eager"]),
        select(vec!["none", "lora", "qlora"]),
        any::<bool>(),
    );
    (model, sizes, numbers, optim, rest).prop_map(|(model, sizes, precision, optim, rest)| {
        let (batch, seq, images, accum) = sizes;
        let (ckpt, attn, freeze, clip) = rest;
        let case = json!({
            "model": model, "batch": batch, "seq": seq, "images": images, "accum": accum, "precision": precision,
            "optim": optim, "ckpt": ckpt, "attn": attn, "freeze": freeze, "clip": clip,
        });
        case.as_object().cloned().unwrap_or_default()
    })
}

fn draw() -> Vec<Map<String, Value>> {
    let mut runner = TestRunner::default();
    let mut one = || cases().new_tree(&mut runner).expect("a case can be drawn").current();
    (0..SETUPS).map(|_| one()).collect()
}

/// Runs the command line on the cases and returns one line each.
pub fn command_line(cases: &[Map<String, Value>]) -> Vec<Value> {
    let lines: String = cases.iter().map(|case| format!("{}\n", json!(case))).collect();
    let mut process = Command::new(binary())
        .args(["estimate", "--cases", "-", "--format", "jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut input = process.stdin.take().expect("its input is piped");
    input.write_all(lines.as_bytes()).expect("it reads its input");
    drop(input);
    let output = process.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("it writes UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("it writes JSON"))
        .collect()
}

/// Path of the binary, which a build of the workspace's tests places beside this test.
pub fn binary() -> PathBuf {
    let mut path = std::env::current_exe().expect("this test has a path");
    path.pop();
    path.pop();
    path.join(format!("vramscope{}", std::env::consts::EXE_SUFFIX))
}

fn fragment(case: &Map<String, Value>) -> String {
    let value = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let pairs: Vec<_> = case.iter().map(|(key, v)| format!("{key}={}", value(v))).collect();
    // Without a card, the command line simulates the measured one.
    format!("#/?gpu=H200&{}", pairs.join("&"))
}

async fn compare(page: &Page, case: &Map<String, Value>, line: &Value) -> WebDriverResult<()> {
    page.go(&fragment(case)).await?;
    if let Some(error) = line.get("error").and_then(Value::as_str) {
        let refusal = page.text("refusal").named(&format!("the refusal of {case:?}"));
        refusal.contains(between_settings(error)).await?;
    }
    for (testid, key) in [("peak-allocated", "peak_allocated"), ("peak-reserved", "peak_reserved")] {
        let shown = page.value(testid).named(&format!("{testid} of {case:?}"));
        match line.get(key) {
            Some(bytes) => shown.holds(&bytes.to_string()).await?,
            None => shown.absent().await?,
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_page_and_the_command_line_give_the_same_bytes() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let cases = draw();
        let lines = command_line(&cases);
        assert_eq!(lines.len(), cases.len());
        let estimated = lines.iter().filter(|line| line.get("error").is_none()).count();
        assert!(estimated > 0, "every drawn setup was refused: {lines:?}");
        for (case, line) in cases.iter().zip(&lines) {
            compare(page, case, line).await?;
        }
        Ok(())
    })
    .await;
}
