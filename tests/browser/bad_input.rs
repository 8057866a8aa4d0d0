//! Tests invalid input: it is kept and explained.

use thirtyfour::error::WebDriverResult;
use vramscope_engine::Model;

use crate::page::{Page, with_page};

#[tokio::test]
async fn a_text_that_is_no_number_stays_with_a_message_beside_it() {
    with_page("#/?model=gpt2&batch=2", async |page| {
        let before = page.value("peak-allocated").present().await?;
        page.enter("batch", "many").await?;
        let message = page
            .until("message", || page.text("error-batch"), |m| !m.is_empty())
            .await?;
        assert!(message.contains("many"), "{message}");
        page.prop("batch", "value").holds("many").await?;
        // The last good number still counts.
        page.value("peak-allocated").holds(&before).await?;
        Ok(())
    })
    .await;
}

/// A number is read whole, or not at all: what was typed so far of a wrong one is no answer.
#[tokio::test]
async fn numbers_are_read_as_people_write_them_and_never_by_their_beginning() {
    with_page("#/?model=gpt2&batch=2&seq=256", async |page| {
        for (text, positions) in [
            ("1k", "2048"),
            ("1e3", "2000"),
            ("1,000", "2000"),
            ("1_0", "20"),
            ("0.5K", "1024"),
        ] {
            page.enter("seq", text).await?;
            page.value("positions").named(text).holds(positions).await?;
            page.text("error-seq").named(text).is("").await?;
        }
        page.text("command").contains("--seq 512").await?;
        for wrong in ["4x", "-3", "1.5", "4kb", "12abc", "1e", "7,00"] {
            page.enter("seq", wrong).await?;
            page.text("error-seq").contains(&format!("\"{wrong}\"")).await?;
            page.attr("seq", "aria-invalid").holds("true").await?;
            page.prop("seq", "value").holds(wrong).await?;
            // The last good result stays.
            page.value("positions").named(wrong).holds("1024").await?;
            page.text("command").contains("--seq 512").await?;
        }
        Ok(())
    })
    .await;
}

/// What is out of range is refused, and marked where it was entered.
#[tokio::test]
async fn what_is_out_of_range_is_marked_at_its_field() {
    with_page("#/?model=gpt2&seq=256", async |page| {
        for (testid, wrong, good) in [("batch", "0", "1"), ("batch", "65537", "2"), ("seq", "4k", "512")] {
            page.enter(testid, wrong).await?;
            page.find("refusal").await?;
            page.text(&format!("error-{testid}")).nonempty().await?;
            page.attr(testid, "aria-invalid").holds("true").await?;
            page.enter(testid, good).await?;
            page.text(&format!("error-{testid}")).is("").await?;
            page.value("peak-allocated").present().await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn absurd_sizes_are_refused_in_words() {
    with_page("#/?model=gpt2", async |page| {
        for absurd in ["0", "99999999999", "18446744073709551615"] {
            page.enter("batch", absurd).await?;
            let message = page.until(absurd, || page.text("refusal"), |m| !m.is_empty()).await?;
            assert!(message.len() > 40, "{message}");
            page.enter("batch", "1").await?;
            page.value("peak-allocated").present().await?;
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_malformed_config_shows_why_and_stays() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.click("from-config").await?;
        let broken = "{\"model_type\": \"llama\", \"hidden_size\":";
        page.enter("config", broken).await?;
        let wanted = |m: &String| m.contains("JSON");
        page.until("message", || page.text("error-config"), wanted).await?;
        page.prop("config", "value").holds(broken).await?;
        page.text("refusal").contains("JSON").await?;

        // Switching to the catalogue and back keeps the text.
        page.click("from-catalogue").await?;
        page.value("peak-allocated").present().await?;
        page.click("from-config").await?;
        page.prop("config", "value").holds(broken).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pasted_config_gives_the_catalogues_bytes_and_survives_a_reload() {
    with_page("#/?model=gpt2", async |page| {
        let catalogue = page.value("peak-allocated").present().await?;
        page.click("from-config").await?;
        let config = Model::catalogue_config("gpt2").expect("it is in the catalogue");
        let paste = "const area = document.querySelector('[data-testid=config]'); area.value = arguments[0];\
                     area.dispatchEvent(new Event('input', { bubbles: true }))";
        page.run_with(paste, vec![config.into()]).await?;
        let fragment = page
            .until("fragment", || page.fragment(), |f| f.contains("config="))
            .await?;
        page.go(&fragment).await?;
        page.prop("config", "value").holds(config).await?;
        page.value("peak-allocated").holds(&catalogue).await?;
        Ok(())
    })
    .await;
}

/// Drags a file over an element, or drops it there.
const DRAG: &str = "const data = new DataTransfer(); data.items.add(new File([arguments[3]], arguments[2]));\
    document.querySelector(arguments[0]).dispatchEvent(\
    new DragEvent(arguments[1], { dataTransfer: data, bubbles: true, cancelable: true }))";

async fn drop_file(page: &Page, area: &str, name: &str, text: &str) -> WebDriverResult<()> {
    for event in ["dragover", "drop"] {
        let arguments = [area, event, name, text].map(Into::into).to_vec();
        page.run_with(DRAG, arguments).await?;
        let marked = || {
            page.script_with::<bool>(
                "return document.querySelector(arguments[0]).classList.contains('file-over')",
                vec![area.into()],
            )
        };
        page.until("mark", marked, |marked| *marked == (event == "dragover"))
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_dropped_file_is_read_wherever_files_can_be_opened() {
    with_page("#/?model=gpt2", async |page| {
        page.click("from-config").await?;
        page.find("config").await?;
        drop_file(page, ".config", "config.json", "{\"model_type\": \"flobert\"}").await?;
        let wanted = |m: &String| m.contains("flobert");
        page.until("message", || page.text("error-config"), wanted).await?;

        page.go("#/benchmarks").await?;
        page.find("bench-list").await?;
        drop_file(page, ".bench-records", "mine.json", "nothing").await?;
        let failed = || page.text("bench-failed");
        page.until("refusal", failed, |text| text.contains("mine.json")).await?;

        page.go("#/diagnose").await?;
        page.find("diagnose-text").await?;
        let error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity \
                     of 23.69 GiB of which 1.10 GiB is free.";
        drop_file(page, ".diagnose-input", "error.txt", error).await?;
        page.find("finding").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn refusals_are_in_the_persons_language_and_name_what_was_given() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        for (entries, parts) in [
            (
                "model=gpt2&batch=0",
                ["must be between", "微批次大小", "微批次大小", "65536"],
            ),
            (
                "model=llava-1.5-7b&images=4&seq=2048",
                ["raise “Sequence length”", "张图像", "張影像", "2304"],
            ),
            (
                "model=gpt2&freeze=lora",
                ["which has no linear layers", "没有可加适配器", "沒有可加轉接器", "gpt2"],
            ),
            (
                "model=clip-l&phase=generate",
                ["does not generate", "不生成文本", "不生成文字", "clip-l"],
            ),
        ] {
            let [english, simplified, traditional, given] = parts;
            for (lang, words) in [("en", english), ("zh-CN", simplified), ("zh-TW", traditional)] {
                page.go(&format!("#/?{entries}&lang={lang}")).await?;
                let message = page.until(entries, || page.text("refusal"), |m| !m.is_empty()).await?;
                assert!(message.contains(words) && message.contains(given), "{lang}: {message}");
                assert!(lang == "en" || !message.contains(english), "{lang}: {message}");
            }
        }
        // Switching the language translates the message on screen.
        page.choose("language", "en").await?;
        page.text("refusal").contains("does not generate").await?;
        Ok(())
    })
    .await;
}
