//! Files that start runs, walked on the page: file in, answer, way out, launch file back.

use std::process::Command;

use serde_json::{Value, json};
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::with_page;
use crate::same_bytes::binary;

/// Files of `tests/data/launch`, one of each tool: recipes, and scripts of the shell.
const OF_EACH_TOOL: [&str; 4] = [
    "axolotl_gemma3_qlora.yaml",
    "llama_factory_qwen3_lora.sh",
    "ms_swift_zero2.sh",
    "trl_sft.yaml",
];

/// More of them, with images, on several nodes, and for preferences.
const MORE: [&str; 8] = [
    "axolotl_qwen2_5_vl.yaml",
    "axolotl_smolvlm2.yaml",
    "llama_factory_qwen3_vl_lora.yaml",
    "ms_swift_ocr.sh",
    "ms_swift_qlora.sh",
    "ms_swift_two_nodes.sh",
    "ms_swift_video.sh",
    "trl_dpo_qwen2_5_vl.sh",
];

/// Drops a file onto the page.
const DROP: &str = "const data = new DataTransfer(); \
    data.items.add(new File([arguments[1]], arguments[0])); \
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))";

fn path(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data/launch")
        .join(name)
}

/// What the command line says that the file needs; `None` if it refuses it.
fn needed(name: &str) -> Option<u64> {
    let mut command = Command::new(binary());
    command.args(["estimate", "--format", "json", "--gpu", "H200", "--offline", "--launch"]);
    let output = command.arg(path(name)).output().expect("the binary starts");
    let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
    answer["target"]["needed"].as_u64()
}

/// Goes through one file; returns what the page says that it needs.
async fn walk(page: &Page, name: &str) -> WebDriverResult<Option<u64>> {
    page.go("#/?model=gpt2&gpu=H200").await?;
    page.value("verdict").present().await?;
    let text = std::fs::read_to_string(path(name)).expect("it is there");
    page.run_with(DROP, vec![name.into(), json!(text)]).await?;
    // A name that is of the shape of a model that is built in is found a moment later.
    let is_known = |value: &Option<String>| value.as_deref().is_some_and(|value| value != "refused");
    let verdict = page.value("launch-figure").until(is_known).await?.expect("a verdict");
    assert!(["fits", "tight", "oom"].contains(&&*verdict), "{name}: {verdict}");
    page.value("launch-grade").present().await?;
    let needed = page.attr("launch-figure", "data-needed").present().await?;
    page.click("launch-use").await?;
    page.attr("launch", "open").absent().await?;
    page.value("verdict").holds(&verdict).await?;
    page.click("launch-file").await?;
    let file = page.text("launch-file-panel").nonempty().await?;
    assert!(file.len() > 40, "{name}: {file}");
    Ok(needed.parse().ok())
}

/// Walks files one after another, and compares what the page says that each needs with what the command line says.
async fn walk_all(names: &[&str]) {
    with_page("#/?model=gpt2", async |page| {
        for name in names {
            let told = walk(page, name).await?;
            assert_eq!(told, needed(name), "{name}");
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_file_of_each_tool_is_answered_as_the_command_line_does_and_comes_back() {
    walk_all(&OF_EACH_TOOL).await;
}

#[tokio::test]
async fn eight_more_files_are_answered_as_the_command_line_does_and_come_back() {
    walk_all(&MORE).await;
}

/// What is refused has a press for each way out, in the dialog and beside the results.
#[tokio::test]
async fn a_refusal_has_a_press_for_each_way_out() {
    with_page("#/?model=gpt2&world=4&strategy=tensor", async |page| {
        page.find("refusal").await?;
        page.go("#/?model=qwen2.5-0.5b&trainer=trl_grpo&batch=1&gpu=H200")
            .await?;
        page.find("refusal").await?;
        page.click("way-out").await?;
        page.value("verdict").present().await?;
        Ok(())
    })
    .await;
}
