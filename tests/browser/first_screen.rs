//! The first screen: one field that takes everything, the setup as a sentence, and a verdict that says what fits.

use serde_json::json;
use thirtyfour::error::WebDriverResult;
use xtask::root;

use crate::Page;
use crate::page::with_page;
use crate::person::Person;
use crate::recorded::{OF_TESTS, drop_bytes};

/// Pastes a text where the focus is.
const PASTE: &str = "const data = new DataTransfer(); data.setData('text/plain', arguments[0]); \
    (document.activeElement ?? document.body).dispatchEvent( \
        new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))";

const CRASH: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity \
                     of 23.64 GiB of which 1.89 GiB is free. Including non-PyTorch memory, this process has 21.70 GiB \
                     memory in use. Of the allocated memory 21.45 GiB is allocated by PyTorch, and 54.00 MiB is reserved \
                     by PyTorch but unallocated.";

async fn paste(page: &Page, text: &str) -> WebDriverResult<()> {
    page.run_with(PASTE, vec![text.into()]).await
}

/// Leaves the field that has the focus: a press on it would select nothing.
const LEAVE: &str = "document.activeElement.blur()";

/// A visit without a setup opens on one that fits, and says what it is.
#[tokio::test]
async fn a_visit_opens_on_what_fits_and_says_what() {
    with_page("", async |page| {
        page.value("verdict").holds("fits").await?;
        let verdict = page.text("verdict").contains("qwen2.5-vl-7b, LoRA adapters: fits on RTX 4090").await?;
        assert!(verdict.contains("GiB"), "{verdict}");
        page.text("verdict-step").contains("a step").await?;
        page.value("grade").holds("exact").await?;
        let measured = page.value("exactness-badge").present().await?;
        assert!(measured.parse::<usize>().expect("a number") > 10, "{measured}");
        // The address is a link to the same.
        page.fragment().contains("model=qwen2.5-vl-7b").await?;
        page.fragment().contains("ckpt=full").await?;
        let primary = "return [...document.querySelectorAll('.primary')].filter((e) => e.getBoundingClientRect().width > 0).length";
        page.script::<usize>(primary).is(1).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// The default setup of old links stays what it was.
#[tokio::test]
async fn links_that_name_a_setup_do_not_open_on_another() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.text("verdict").contains("llava-1.5-7b, Full fine-tuning").await?;
        page.fragment().is("#/?model=llava-1.5-7b").await?;
        for old in ["#/recommend", "#/recorded", "#/benchmarks", "#/attention", "#/compare"] {
            page.go(old).await?;
            page.no_fault().await?;
            page.find_at("main#results").await?;
        }
        Ok(())
    })
    .await;
}

/// The sentence is the form: each part changes the verdict, and what is wrong in it is said.
#[tokio::test]
async fn the_sentence_is_the_form() {
    with_page("", async |page| {
        page.value("verdict").holds("fits").await?;
        let mut person = Person::at(page);
        person.fills("say-batch", "64").await?;
        person.sees("oom").await?;
        page.run(LEAVE).await?;
        person.fills("say-batch", "4k").await?;
        page.fragment().contains("batch=4k").await?;
        page.run(LEAVE).await?;
        person.fills("say-batch", "1").await?;
        person.picks("say-gpu", "h200").await?;
        person.picks("say-model", "qwen2.5-vl-3b").await?;
        page.choose("say-freeze", "none").await?;
        person.fills("say-seq", "1024").await?;
        person.fills("say-world", "2").await?;
        page.text("verdict")
            .contains("qwen2.5-vl-3b, Full fine-tuning: fits on 2 × H200")
            .await?;
        person.fills("say-batch", "four").await?;
        page.text("say-error").contains("four").await?;
        // All other settings stand beside the results, once they are asked for.
        let width = "return document.querySelector('#settings').getBoundingClientRect().width";
        page.script::<f64>(width).is(0.0).await?;
        person.click("all-settings").await?;
        page.script::<f64>(width).until(|width| *width > 200.0).await?;
        page.prop("seq", "value").holds("1024").await?;
        Ok(())
    })
    .await;
}

/// Whatever is pasted into the field, or anywhere on any page, goes where it is read.
#[tokio::test]
async fn one_field_takes_everything() {
    with_page("", async |page| {
        page.value("verdict").present().await?;
        let mut person = Person::at(page);
        // The id of a model, typed; part of a name; an address that is pasted.
        person.fills("intake", "Qwen/Qwen2.5-VL-3B-Instruct").await?;
        page.keys(thirtyfour::Key::Enter + "").await?;
        page.fragment().contains("Qwen2.5-VL-3B-Instruct").await?;
        page.value("verdict").present().await?;
        person.fills("intake", "qwen 3 8b").await?;
        page.keys(thirtyfour::Key::Enter + "").await?;
        page.fragment().contains("Qwen3-8B").await?;
        page.find("intake").await?.focus().await?;
        paste(page, "https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct").await?;
        page.fragment().contains("Qwen2.5-VL-7B-Instruct").await?;
        // A launch command opens the dialog; a crash the diagnosis; a configuration is the model.
        page.find("intake").await?.focus().await?;
        paste(
            page,
            "swift sft --model Qwen/Qwen2.5-VL-3B-Instruct --tuner_type lora --max_length 1024",
        )
        .await?;
        page.find("launch-use").await?;
        page.click("launch-close").await?;
        page.find("intake").await?.focus().await?;
        paste(page, CRASH).await?;
        page.text("finding").contains("2.50 GiB").await?;
        page.fragment().contains("#/diagnose").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_paste_and_a_drop_are_taken_on_every_page() {
    with_page("#/course?row=9.attn", async |page| {
        page.value("course-row").holds("9.attn").await?;
        let config =
            json!({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "num_hidden_layers": 2, "hidden_size": 896,
            "intermediate_size": 4864, "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151_936,
            "max_position_embeddings": 32768}).to_string();
        paste(page, &config).await?;
        page.value("params").present().await?;
        page.fragment().contains("#/?").await?;
        page.go("#/benchmarks").await?;
        page.find("bench-files").await?;
        paste(page, "gpt2-medium").await?;
        page.fragment().contains("#/?model=gpt2-medium").await?;
        page.go("#/attention?model=gpt2").await?;
        page.find("memory-slider").await?;
        let bytes = std::fs::read(root().join(OF_TESTS)).expect("a recording");
        drop_bytes(page, "body", "run.vram.gz", &bytes).await?;
        page.text("recording-name").contains("run.vram.gz").await?;
        let here = page
            .script::<String>("return location.origin + location.pathname")
            .nonempty()
            .await?;
        paste(page, &format!("{here}#/?model=gpt2&batch=3")).await?;
        page.fragment().is("#/?model=gpt2&batch=3").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// What cannot be told apart is asked about, and goes where the person says.
#[tokio::test]
async fn what_is_unknown_is_asked_about() {
    with_page("#/?model=gpt2", async |page| {
        page.value("verdict").present().await?;
        paste(page, "something that nobody can know").await?;
        page.text("unknown").contains("something that nobody can know").await?;
        page.click("unknown-cancel").await?;
        page.value("verdict").present().await?;
        drop_bytes(page, "body", "notes.bin", b"words").await?;
        page.text("unknown").contains("notes.bin").await?;
        page.click("unknown-crash").await?;
        page.fragment().contains("#/diagnose").await?;
        page.find("diagnose-text").await?;
        Ok(())
    })
    .await;
}

/// Beside the verdict: the launch file of a setup that fits, and a link that names every setting that decides.
#[tokio::test]
async fn what_fits_has_a_launch_file_and_a_whole_link() {
    with_page("", async |page| {
        page.value("verdict").holds("fits").await?;
        page.run("window.copied = null; navigator.clipboard.writeText = async (text) => { window.copied = text }")
            .await?;
        page.click("share-link").await?;
        let link = page.script::<Option<String>>("return window.copied").present().await?;
        for part in ["model=qwen2.5-vl-7b", "batch=1", "optim=adamw", "precision=", "world=1"] {
            assert!(link.contains(part), "{part}: {link}");
        }
        page.click("launch-file").await?;
        page.text("launch-file-text").contains("gradient_checkpointing").await?;
        page.choose("launch-file-tool", "ms-swift").await?;
        page.text("launch-file-text").contains("max_length: 2048").await?;
        page.click("launch-file-copy").await?;
        page.script::<String>("return window.copied").contains("lora").await?;
        Ok(())
    })
    .await;
}

/// Five places, and two behind them.
#[tokio::test]
async fn the_menu_has_five_places() {
    with_page("#/?model=gpt2", async |page| {
        page.value("verdict").present().await?;
        let places = "return [...document.querySelectorAll('.pages > a')].map((a) => a.dataset.testid)";
        page.script::<Vec<String>>(places)
            .is(["nav/", "nav/diagnose", "nav/compare", "nav/attention", "nav/course"])
            .await?;
        page.click("nav-more").await?;
        page.click("nav/benchmarks").await?;
        page.find("bench-files").await?;
        page.go("#/recommend?model=gpt2").await?;
        page.find("plan-go").await?;
        page.attr("nav/", "aria-current").holds("page").await?;
        Ok(())
    })
    .await;
}
