//! Tests invalid input: it is kept and explained.

use thirtyfour::error::WebDriverResult;
use vramscope_engine::Model;

use crate::page::{Page, with_page};

#[tokio::test]
async fn a_text_that_is_no_number_stays_with_a_message_beside_it() {
    with_page("#/?model=gpt2&batch=2", async |page| {
        let before = page.value("peak-allocated").await?;
        page.enter("batch", "many").await?;
        let message = page
            .until("message", || page.text("error-batch"), |m| !m.is_empty())
            .await?;
        assert!(message.contains("many"), "{message}");
        assert_eq!(page.find("batch").await?.prop("value").await?.as_deref(), Some("many"));
        assert_eq!(
            page.value("peak-allocated").await?,
            before,
            "the last good number still counts"
        );
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
            page.until("peak-allocated", || page.value("peak-allocated"), Option::is_some)
                .await?;
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_malformed_config_shows_why_and_stays() {
    with_page("", async |page| {
        page.click("from-config").await?;
        let broken = "{\"model_type\": \"llama\", \"hidden_size\":";
        page.enter("config", broken).await?;
        let wanted = |m: &String| m.contains("JSON");
        page.until("message", || page.text("error-config"), wanted).await?;
        assert_eq!(page.find("config").await?.prop("value").await?.as_deref(), Some(broken));
        assert!(page.text("refusal").await?.contains("JSON"));

        // Switching to the catalogue and back keeps the text.
        page.click("from-catalogue").await?;
        page.until("peak-allocated", || page.value("peak-allocated"), Option::is_some)
            .await?;
        page.click("from-config").await?;
        assert_eq!(page.find("config").await?.prop("value").await?.as_deref(), Some(broken));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pasted_config_gives_the_catalogues_bytes_and_survives_a_reload() {
    with_page("#/?model=gpt2", async |page| {
        let catalogue = page.value("peak-allocated").await?;
        page.click("from-config").await?;
        let config = Model::catalogue_config("gpt2").expect("it is in the catalogue");
        let paste = "const area = document.querySelector('[data-testid=config]'); area.value = arguments[0];\
                     area.dispatchEvent(new Event('input', { bubbles: true }))";
        page.driver.execute(paste, vec![config.into()]).await?;
        let fragment = page
            .until("fragment", || page.fragment(), |f| f.contains("config="))
            .await?;
        page.go(&fragment).await?;
        assert_eq!(page.find("config").await?.prop("value").await?.as_deref(), Some(config));
        assert_eq!(page.value("peak-allocated").await?, catalogue);
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
        page.driver.execute(DRAG, arguments).await?;
        let marked = || async {
            let script = "return document.querySelector(arguments[0]).classList.contains('file-over')";
            page.driver.execute(script, vec![area.into()]).await?.convert::<bool>()
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
    with_page("", async |page| {
        for (entries, parts) in [
            (
                "model=gpt2&batch=0",
                ["must be between", "微批次大小", "微批次大小", "65536"],
            ),
            (
                "model=llava-1.5-7b&images=4&seq=2048",
                ["raise `seq`", "张图像", "張影像", "2304"],
            ),
            (
                "model=gpt2&freeze=lora",
                ["which has no q_proj", "没有可加适配器", "沒有可加轉接器", "gpt2"],
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
        page.until("English", || page.text("refusal"), |m| m.contains("does not generate"))
            .await?;
        Ok(())
    })
    .await;
}
