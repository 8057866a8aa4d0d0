//! Files that start a run: dropped, pasted and opened; and two of them beside each other.

use std::process::Command;

use serde_json::{Value, json};
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::accessible::{findings, set_width};
use crate::export::saved;
use crate::page::{Shown, with_page};
use crate::same_bytes::binary;

const LLAMA_FACTORY: &str = "### model
model_name_or_path: Qwen/Qwen2.5-VL-3B-Instruct
image_max_pixels: 262144

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: all

### dataset
template: qwen2_vl
cutoff_len: 1024

### train
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
learning_rate: 1.0e-4
bf16: true
";

const SWIFT: &str = "CUDA_VISIBLE_DEVICES=0 \\
swift sft \\
    --model Qwen/Qwen2.5-VL-3B-Instruct \\
    --tuner_type lora \\
    --lora_rank 8 \\
    --target_modules all-linear \\
    --freeze_vit true \\
    --freeze_aligner true \\
    --torch_dtype bfloat16 \\
    --bf16 true \\
    --max_length 2048 \\
    --per_device_train_batch_size 1 \\
    --gradient_accumulation_steps 4 \\
    --gradient_checkpointing true
";

const ZERO: &str = r#"{"zero_optimization": {"stage": 2, "reduce_bucket_size": 2e8}, "bf16": {"enabled": "auto"}}"#;

/// The command line's answer to a file, or to two beside each other.
fn launched(files: &[(&str, &str)], flags: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder of the test's own");
    let mut command = Command::new(binary());
    command.args(["estimate", "--format", "json"]).args(flags);
    for (flag, (name, text)) in ["--launch", "--against"].iter().zip(files) {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file of the test's own");
        command.arg(flag).arg(path);
    }
    let output = command.output().expect("the binary starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Drops files of these names and texts onto an element.
const DROP: &str = "const data = new DataTransfer(); \
    for (const [name, text] of arguments[1]) data.items.add(new File([text], name)); \
    document.querySelector(arguments[0]).dispatchEvent( \
        new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))";

/// Pastes a text where the focus is.
const PASTE: &str = "const data = new DataTransfer(); data.setData('text/plain', arguments[0]); \
    (document.activeElement ?? document.body).dispatchEvent( \
        new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))";

async fn drop_files(page: &Page, area: &str, files: &[(&str, &str)]) -> WebDriverResult<()> {
    page.run_with(DROP, vec![area.into(), json!(files)]).await?;
    Ok(())
}

async fn paste(page: &Page, text: &str) -> WebDriverResult<()> {
    page.run_with(PASTE, vec![text.into()]).await?;
    Ok(())
}

/// The page shows what one length reserves; the command line adds what many lengths do, where no file tells them.
async fn shows_peak(page: &Page, wanted: &Value) -> WebDriverResult<()> {
    let layouts = wanted["reserved"].as_array().expect("layouts of segments");
    let of_one_length = layouts.iter().filter(|layout| layout["layout"] != "many-lengths");
    let reserved = of_one_length.filter_map(|layout| layout["bytes"].as_u64()).max();
    let reserved = reserved.expect("a layout of one length");
    page.value("peak-allocated")
        .holds(&wanted["peak_allocated"].to_string())
        .await?;
    page.value("peak-reserved").holds(&reserved.to_string()).await
}

#[tokio::test]
async fn a_dropped_file_accounts_for_its_lines_and_becomes_the_setup() {
    with_page("#/?model=gpt2&gpu=RTX%204090", async |page| {
        page.find("peak-allocated").await?;
        let text = LLAMA_FACTORY.to_owned() + "neat_packing: true\ncutof_len: 7\n";
        drop_files(page, ".controls", &[("train.yaml", &text)]).await?;
        page.find("launch-use").await?;
        page.text("launch-as").contains("LLaMA-Factory 0.9.5").await?;
        page.text("launch-not-simulated").contains("neat_packing").await?;
        page.text("launch-unknown").contains("cutoff_len").await?;
        page.text("launch-missing").contains("RTX 4090").await?;
        page.text("launch-taken")
            .contains("per_device_train_batch_size")
            .await?;
        page.text("launch-no-effect").contains("learning_rate").await?;
        page.text("launch-defaults").contains("freeze_vision_tower").await?;
        page.click("launch-close").await?;
        // The same file, mended, is taken.
        drop_files(page, ".controls", &[("train.yaml", LLAMA_FACTORY)]).await?;
        page.click("launch-use").await?;
        shows_peak(
            page,
            &launched(&[("train.yaml", LLAMA_FACTORY)], &["--gpu", "RTX 4090"]),
        )
        .await?;
        page.fragment().contains("gpu=RTX%204090").await?;
        page.fragment().contains("seq=1024").await?;
        // One step takes it back.
        page.click("undo").await?;
        page.until(
            "the setup before",
            || page.fragment(),
            |now| now.contains("model=gpt2") && !now.contains("rank"),
        )
        .await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pasted_command_becomes_the_setup_with_images_of_its_largest_size() {
    with_page("#/?gpu=H200", async |page| {
        page.find("peak-allocated").await?;
        page.click("batch").await?;
        paste(page, &SWIFT.replace("CUDA_VISIBLE_DEVICES=0", "MAX_PIXELS=262144")).await?;
        page.click("launch-square").await?;
        page.click("launch-use").await?;
        let flags = ["--gpu", "H200", "--image-sizes", "512x512"];
        shows_peak(page, &launched(&[("run.sh", SWIFT)], &flags)).await?;
        // What starts no run is asked about.
        page.run("document.activeElement?.blur()").await?;
        paste(page, "just words").await?;
        page.click("unknown-cancel").await?;
        page.value("launch-taken").absent().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn files_that_belong_together_are_read_together_and_others_go_where_they_did() {
    with_page("#/?gpu=H200", async |page| {
        page.find("peak-allocated").await?;
        let yaml = LLAMA_FACTORY.to_owned() + "deepspeed: ds.json\n";
        drop_files(page, ".results", &[("train.yaml", &yaml)]).await?;
        page.text("launch-not-simulated").contains("ds.json").await?;
        drop_files(page, ".launch", &[("ds.json", ZERO)]).await?;
        page.text("launch-taken").contains("reduce_bucket_size").await?;
        page.click("launch-use").await?;
        page.until(
            "the bucket",
            || page.fragment(),
            |now| now.contains("zero=reduce_bucket_size%3D200000000"),
        )
        .await?;
        drop_files(page, ".controls", &[("config.json", r#"{"model_type": "gpt2"}"#)]).await?;
        page.until("the configuration", || page.fragment(), |now| now.contains("config="))
            .await?;
        drop_files(page, ".controls", &[("ds.json", ZERO)]).await?;
        page.find("launch-as").await?;
        page.click("launch-close").await?;
        drop_files(page, ".controls", &[("x.yaml", "learning_speed: 4\n")]).await?;
        page.text("launch-fault").contains("x.yaml").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_tools_defaults_are_a_setup_too() {
    with_page("#/?model=qwen2.5-0.5b&gpu=H200&seq=512", async |page| {
        page.click("open-launch").await?;
        page.click_at("[data-testid=launch-tool][data-name=LLaMA-Factory]")
            .await?;
        page.click("launch-use").await?;
        let fragment = page
            .until(
                "the trainer",
                || page.fragment(),
                |now| now.contains("trainer=transformers"),
            )
            .await?;
        assert!(
            fragment.contains("model=qwen2.5-0.5b") && fragment.contains("ckpt=full"),
            "{fragment}"
        );
        Ok(())
    })
    .await;
}

/// Differences of the rows with a test id, by name.
fn values<'a>(page: &'a Page, testid: &str) -> Shown<'a, Vec<i64>> {
    let script = "return [...document.querySelectorAll(arguments[0])].map(row => row.dataset.value)";
    let selector = format!("[data-testid='{testid}']").into();
    let bytes = |all: Vec<String>| all.iter().map(|value| value.parse().expect("bytes")).collect();
    page.script_with::<Vec<String>>(script, vec![selector]).map(bytes)
}

#[tokio::test]
async fn two_files_stand_beside_each_other_and_their_difference_adds_up() {
    with_page("#/compare?gpu=RTX%204090", async |page| {
        page.click("compared-open-A").await?;
        page.enter("launch-text", "x").await?;
        drop_files(page, ".launch-begin", &[("a.yaml", LLAMA_FACTORY)]).await?;
        page.click("launch-use").await?;
        page.find("difference").await?;
        paste(page, SWIFT).await?;
        page.click("launch-use").await?;
        let cli = launched(&[("a.yaml", LLAMA_FACTORY), ("b.sh", SWIFT)], &["--gpu", "RTX 4090"]);
        let of = |run: usize| cli["difference"]["needed"][run].as_i64().expect("bytes");
        let more = of(1) - of(0);
        page.value("difference").holds(&more.to_string()).await?;
        let parts = values(page, "difference-part");
        parts.until(|parts| parts.iter().sum::<i64>() == more).await?;
        // Each kind of tensors in turn: those that are shown and the others.
        let kinds = "return [...document.querySelectorAll('[data-testid=difference-part]')]
            .filter(row => row.querySelector('button')).map(row => row.dataset.name)";
        let kinds = page.script::<Vec<String>>(kinds).until(|kinds| kinds.len() > 2).await?;
        let close =
            "document.querySelectorAll('[data-testid=difference-open][aria-expanded=true]').forEach(b => b.click())";
        for kind in &kinds {
            page.run(close).await?;
            let row = format!("[data-testid=difference-part][data-name='{kind}']");
            page.click_at(&format!("{row} button")).await?;
            page.find("difference-tensor").await?;
            let script = "return document.querySelector(arguments[0]).dataset.value";
            let part = page.script_with::<String>(script, vec![row.into()]).nonempty().await?;
            let sum = "return [...document.querySelectorAll('[data-testid=difference-tensor], [data-testid=difference-rest]')]
                .reduce((sum, row) => sum + BigInt(row.dataset.value), 0n).toString()";
            page.script::<String>(sum).named(kind).is(part).await?;
        }
        page.click("compared-swap").await?;
        page.until(
            "swapped",
            || page.value("difference"),
            |now| *now == Some((-more).to_string()),
        )
        .await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_launches_and_comparisons() {
    with_page("#/?model=gpt2", async |page| {
        page.click("open-launch").await?;
        page.find("launch-text").await?;
        assert_eq!(findings(page).await?, Vec::<String>::new(), "nothing yet");
        page.click("launch-close").await?;
        let text = LLAMA_FACTORY.to_owned() + "neat_packing: true\ncutof_len: 7\n";
        for (width, theme) in [(1440, "light"), (390, "dark")] {
            // On a phone the menu of themes is behind a button.
            page.choose("theme", theme).await?;
            set_width(page, width).await?;
            drop_files(page, ".controls", &[("train.yaml", &text)]).await?;
            page.find("launch-use").await?;
            assert_eq!(findings(page).await?, Vec::<String>::new(), "{width} {theme}");
            page.click("launch-close").await?;
        }
        for (width, theme) in [(1440, "light"), (390, "dark")] {
            set_width(page, width).await?;
            page.go(&format!("#/compare?model=qwen2.5-0.5b&theme={theme}")).await?;
            page.find("compared-take").await?;
            assert_eq!(findings(page).await?, Vec::<String>::new(), "{width} {theme}, no setup");
            page.click("compared-take").await?;
            let taken = page.fragment().contains("compare=").await?;
            page.go(&taken.replace("model=qwen2.5-0.5b&", "model=qwen2.5-0.5b&batch=4&freeze=lora&"))
                .await?;
            page.find("difference-tensor").await?;
            assert_eq!(findings(page).await?, Vec::<String>::new(), "{width} {theme}");
            let sideways = "return document.documentElement.scrollWidth";
            let sideways = page.script::<f64>(sideways);
            sideways.until(|sideways| *sideways <= f64::from(width)).await?;
        }
        Ok(())
    })
    .await;
}

/// What is left out takes the green away, and goes into the link, the text, the JSON and the command.
#[tokio::test]
async fn what_is_left_out_of_the_run_stays_with_the_verdict() {
    with_page("#/?model=gpt2&gpu=H200", async |page| {
        page.find("peak-allocated").await?;
        let text = LLAMA_FACTORY.to_owned() + "neat_packing: true\n";
        drop_files(page, ".controls", &[("train.yaml", &text)]).await?;
        page.click("launch-use").await?;
        page.text("not-this-run").contains("neat_packing: true").await?;
        page.value("verdict").holds("fits").await?;
        let partial = "return document.querySelector('[data-testid=verdict]').classList.contains('verdict-partial')";
        page.script::<bool>(partial).is(true).await?;
        page.text("verdict").contains("Not the whole run").await?;
        page.text("command")
            .contains(": 'Not simulated: neat_packing: true")
            .await?;
        let saved: Value = serde_json::from_str(&saved(page, "save-json").await?).expect("JSON");
        assert_eq!(saved["not_this_run"][0]["given"], "neat_packing: true");
        assert_ne!(saved["grade"], "exact");
        // A link carries it, and a change of the setup does not take it away.
        let link = page.fragment().contains("not_this_run=").await?;
        page.go(&link).await?;
        page.text("not-this-run").contains("neat_packing: true").await?;
        page.enter("batch", "3").await?;
        page.fragment().contains("batch=3").await?;
        page.text("not-this-run").contains("neat_packing: true").await?;
        // Who takes it out of the run says so.
        page.click("left-out-remove").await?;
        page.text("not-this-run").lacks("neat_packing").await?;
        // What is left is what the run has at most, which fits.
        page.script::<bool>(partial).is(false).await?;
        page.text("not-this-run").contains("as long as allowed").await?;
        page.click("left-out-remove").await?;
        page.text("not-this-run").lacks("as long as allowed").await?;
        page.text("not-this-run").contains("full of images").await?;
        page.click("left-out-remove").await?;
        let is_gone = "return document.querySelector('[data-testid=not-this-run]') === null";
        page.script::<bool>(is_gone).is(true).await?;
        page.script::<bool>(partial).is(false).await?;
        page.fragment().lacks("not_this_run").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}
