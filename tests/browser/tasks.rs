//! Walks the ten tasks of `docs/tasks.md` as a person would, and holds what each takes of one.

use serde_json::{Value, json};
use thirtyfour::Key;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::with_page;
use crate::person::{Effort, Person};
use crate::recorded::{OF_TESTS, drop_bytes};

/// Text of an element, once it holds what is wanted.
async fn told(page: &Page, testid: &str, wanted: &str) -> WebDriverResult<String> {
    page.until(testid, || page.text(testid), |text| text.contains(wanted))
        .await
}

/// What the page has put on the clipboard since the press.
async fn copied(person: &mut Person<'_>, testid: &str) -> WebDriverResult<String> {
    let stub = "navigator.clipboard.writeText = async (text) => { window.copied = text }";
    person.page.driver.execute(stub, vec![]).await?;
    person.click(testid).await?;
    let read = "return window.copied ?? ''";
    person.page.driver.execute(read, vec![]).await?.convert()
}

/// 1. To the verdict, to a plan that fits, and to its launch file.
#[tokio::test]
async fn lora_on_one_card_with_a_large_image() {
    with_page("#/", async |page| {
        let mut person = Person::at(page);
        person.picks("model", "2.5-vl-7b").await?;
        person.picks("gpu", "4090").await?;
        person.fills("seq", "4096").await?;
        person.fills("image_sizes", "720p").await?;
        // A menu that has the focus takes the choice that begins with what is typed.
        person.click("freeze").await?;
        person.types("l").await?;
        person.presses(Key::Enter, 1).await?;
        person.sees("oom").await?;
        let address = page.fragment().await?;
        for part in ["model=qwen2.5-vl-7b", "seq=4096", "image_sizes=720p", "freeze=lora"] {
            assert!(address.contains(part), "{part}: {address}");
        }
        let effort = person.rest();
        assert!(effort.clicks <= 5 && effort.keys <= 25, "to the verdict: {effort:?}");

        person.click("make-fit").await?;
        let first = page.find("make-fit-setup").await?.attr("data-value").await?;
        let nearest: Value = serde_json::from_str(&first.expect("a setup")).expect("JSON");
        person.click("make-fit-apply").await?;
        person.sees("fits").await?;
        assert_eq!(person.rest(), Effort { clicks: 2, keys: 0 });
        // What was promised is what the page then says.
        assert_eq!(
            page.value("peak-reserved").await?,
            nearest["peak_reserved"].as_u64().map(|bytes| bytes.to_string())
        );
        let file = copied(&mut person, "make-fit-copy").await?;
        assert!(file.contains("per_device_train_batch_size"), "{file}");
        assert_eq!(person.rest(), Effort { clicks: 1, keys: 0 });
        Ok(())
    })
    .await;
}

/// 2. All weights on eight GPUs: what each needs, by the strategy that shards them.
#[tokio::test]
async fn all_weights_on_eight_gpus() {
    with_page("#/", async |page| {
        let mut person = Person::at(page);
        person.picks("model", "2.5-vl-7b").await?;
        person.fills("world", "8").await?;
        told(page, "verdict", "8 × H100 SXM").await?;
        person.sees("fits").await?;
        let effort = person.rest();
        assert!(effort.clicks <= 2 && effort.keys <= 11, "{effort:?}");
        assert_eq!(page.fragment().await?, "#/?model=qwen2.5-vl-7b&world=8");
        Ok(())
    })
    .await;
}

/// 3. The largest micro-batch of QLoRA on a card for games, and one press that takes it.
#[tokio::test]
async fn the_largest_batch_of_qlora() {
    with_page(
        "#/?model=qwen2.5-vl-3b&gpu=RTX 4090&seq=1024&precision=amp-bf16&ckpt=full",
        async |page| {
            let mut person = Person::at(page);
            person.chooses("freeze", "qlora").await?;
            person.sees("fits").await?;
            person.click("to-section-sweep").await?;
            let found = page
                .until("a batch", || page.value("largest-batch"), Option::is_some)
                .await?;
            person.click("largest-batch-use").await?;
            let used = || async { page.find("batch").await?.prop("value").await };
            page.until("the batch", used, |batch| *batch == found).await?;
            assert_eq!(person.rest(), Effort { clicks: 4, keys: 0 });
            Ok(())
        },
    )
    .await;
}

/// 4. A recording of one's own script, dropped anywhere: its memory on another card.
#[tokio::test]
async fn a_recording_is_read() {
    with_page("#/", async |page| {
        let bytes = std::fs::read(xtask::root().join(OF_TESTS)).expect("a recording");
        drop_bytes(page, ".plan", "run.vram.gz", &bytes).await?;
        // The calculator's own figures stay until the recording's page is there.
        page.find("recording-name").await?;
        page.until("its peak", || page.value("peak-reserved"), Option::is_some)
            .await?;
        let mut person = Person::at(page);
        person.picks("gpu", "h200").await?;
        told(page, "verdict", "H200").await?;
        assert_eq!(person.rest(), Effort { clicks: 1, keys: 5 });
        Ok(())
    })
    .await;
}

/// 5. Two setups beside each other, with what differs.
#[tokio::test]
async fn two_setups_are_compared() {
    with_page("#/?model=gpt2", async |page| {
        let mut person = Person::at(page);
        person.click("pin").await?;
        person.chooses("optim", "sgd").await?;
        let cells =
            "return [...document.querySelectorAll('[data-testid=compare-needed]')].map(c => c.dataset.value ?? null)";
        let cells = || async {
            page.driver
                .execute(cells, vec![])
                .await?
                .convert::<Vec<Option<String>>>()
        };
        let both =
            |all: &Vec<Option<String>>| all.len() == 2 && all[0].is_some() && all[1].is_some() && all[0] != all[1];
        page.until("two amounts", cells, both).await?;
        assert_eq!(person.rest(), Effort { clicks: 3, keys: 0 });
        Ok(())
    })
    .await;
}

/// 6. The `config.json` of a family that is not known: why there is no answer, and how to get one.
#[tokio::test]
async fn an_unknown_family_is_refused_with_the_way_on() {
    with_page("#/?model=gpt2", async |page| {
        let mut person = Person::at(page);
        person.click("from-config").await?;
        person.click("config").await?;
        let config = json!({ "model_type": "nobodys", "hidden_size": 64 }).to_string();
        page.find("config").await?.send_keys(&*config).await?;
        let why = told(page, "refusal", "nobodys").await?;
        assert!(why.contains("vramscope.record"), "{why}");
        // Nothing of the last model stands under the name of this one.
        assert_eq!(page.value("peak-reserved").await?, None);
        assert_eq!(person.rest().clicks, 2);
        Ok(())
    })
    .await;
}

/// 7. The message of a crash: its cause, and the planner opened with a step that helps.
#[tokio::test]
async fn a_message_is_diagnosed() {
    with_page("#/", async |page| {
        let mut person = Person::at(page);
        person.click("nav/diagnose").await?;
        person.click("diagnose-text").await?;
        let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 23.64 GiB \
                       of which 1.89 GiB is free. Including non-PyTorch memory, this process has 21.70 GiB memory in use. Of the allocated memory 21.45 GiB is \
                       allocated by PyTorch, and 54.00 MiB is reserved by PyTorch but unallocated.";
        page.find("diagnose-text").await?.send_keys(message).await?;
        person.click("diagnose-go").await?;
        told(page, "finding", "2.50 GiB").await?;
        assert_eq!(person.rest(), Effort { clicks: 3, keys: 0 });
        Ok(())
    })
    .await;
}

/// 8. On a phone: the verdict is in the first screen, and stays in sight while one scrolls to the entries.
#[tokio::test]
async fn on_a_phone_the_verdict_is_in_the_first_screen() {
    with_page("#/", async |page| {
        let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 3, "mobile": true });
        page.driver
            .cdp()
            .send_raw("Emulation.setDeviceMetricsOverride", phone)
            .await?;
        page.go("#/?model=gpt2").await?;
        page.until("a verdict", || page.value("verdict"), Option::is_some).await?;
        let bottom = "return document.querySelector('[data-testid=verdict]').getBoundingClientRect().bottom";
        let bottom: f64 = page.driver.execute(bottom, vec![]).await?.convert()?;
        assert!(bottom < 844.0, "{bottom}");
        let mut person = Person::at(page);
        person.fills("batch", "512").await?;
        person.sees("oom").await?;
        let shown = "const box = document.querySelector('.sticky-out .sticky-line, .headline .verdict').getBoundingClientRect();
            return box.bottom > 0 && box.top < innerHeight";
        let shown = || async { page.driver.execute(shown, vec![]).await?.convert::<bool>() };
        page.until("the verdict in sight", shown, |is| *is).await?;
        assert_eq!(person.rest(), Effort { clicks: 1, keys: 3 });
        Ok(())
    })
    .await;
}

/// 9. The first task without the mouse.
#[tokio::test]
async fn the_first_task_is_done_by_keyboard_alone() {
    with_page("#/", async |page| {
        page.find("peak-allocated").await?;
        let mut person = Person::at(page);
        // The second of the links that are skipped to.
        person.presses(Key::Tab, 2).await?;
        person.presses(Key::Enter, 1).await?;
        assert_eq!(person.focused().await?, "model");
        person.types("2.5-vl-7b").await?;
        person.presses(Key::Enter, 1).await?;
        person.tabs_to("gpu").await?;
        person.types("4090").await?;
        person.presses(Key::Enter, 1).await?;
        person.tabs_to("seq").await?;
        person.types("4096").await?;
        person.tabs_to("image_sizes").await?;
        person.types("720p").await?;
        person.tabs_to("freeze").await?;
        person.types("l").await?;
        person.sees("oom").await?;
        let address = page.fragment().await?;
        assert!(
            address.contains("seq=4096") && address.contains("freeze=lora"),
            "{address}"
        );
        let effort = person.rest();
        assert!(effort.clicks == 0 && effort.keys <= 45, "{effort:?}");
        // Help stays within reach: Shift+Tab leads to it.
        let back = page.driver.action_chain();
        back.key_down(Key::Shift)
            .send_keys(Key::Tab + "")
            .key_up(Key::Shift)
            .perform()
            .await?;
        assert_eq!(person.focused().await?, "help-button");
        Ok(())
    })
    .await;
}

/// 10. In Chinese, from the choice of the language to a link that keeps it.
#[tokio::test]
async fn in_chinese() {
    with_page("#/", async |page| {
        let mut person = Person::at(page);
        person.chooses("language", "zh-CN").await?;
        told(page, "verdict", "需要").await?;
        person
            .picks("model", "https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct")
            .await?;
        person.picks("gpu", "4090").await?;
        person.sees("oom").await?;
        assert!(page.text("make-fit").await?.chars().any(|c| c > '一'));
        let address = page.fragment().await?;
        assert!(address.contains("model=Qwen%2FQwen2.5-VL-7B-Instruct"), "{address}");
        assert_eq!(person.rest().clicks, 4);
        Ok(())
    })
    .await;
}
