//! Walks the tasks of `docs/tasks.md` as a person would, and holds what each takes of one.

use serde_json::{Value, json};
use thirtyfour::Key;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::with_page;
use crate::person::{Person, walk};
use crate::recorded::{OF_TESTS, drop_bytes};

/// Text of an element, once it holds what is wanted.
async fn told(page: &Page, testid: &str, wanted: &str) -> WebDriverResult<String> {
    page.until(testid, || page.text(testid), |text| text.contains(wanted))
        .await
}

/// What the page puts on the clipboard at a press.
async fn copied(person: &mut Person<'_>, testid: &str) -> WebDriverResult<String> {
    let stub = "window.copied = null; navigator.clipboard.writeText = async (text) => { window.copied = text }";
    person.page.run(stub).await?;
    person.click(testid).await?;
    person
        .page
        .script::<Option<String>>("return window.copied")
        .present()
        .await
}

/// 1. To the verdict, to a plan that fits, and to its launch file.
#[tokio::test]
async fn lora_on_one_card_with_a_large_image() {
    walk("#/?model=llava-1.5-7b", async |page, person| {
        person.picks("say-model", "2.5-vl-7b").await?;
        person.picks("say-gpu", "4090").await?;
        person.fills("say-seq", "4096").await?;
        person.fills("image_sizes", "720p").await?;
        // A menu that has the focus takes the choice that begins with what is typed.
        person.click("say-freeze").await?;
        person.types("l").await?;
        person.presses(Key::Enter, 1).await?;
        person.sees("oom").await?;
        for part in ["model=qwen2.5-vl-7b", "seq=4096", "image_sizes=720p", "freeze=lora"] {
            page.fragment().contains(part).await?;
        }
        person.took_at_most(5, 25);

        person.click("make-fit").await?;
        let first = page.value("make-fit-setup").present().await?;
        let nearest: Value = serde_json::from_str(&first).expect("JSON");
        person.click("make-fit-apply").await?;
        person.sees("fits").await?;
        person.took_at_most(2, 0);
        // What was promised is what the page then says.
        page.value("peak-reserved")
            .holds(&nearest["peak_reserved"].to_string())
            .await?;
        let file = copied(person, "make-fit-copy").await?;
        assert!(file.contains("per_device_train_batch_size"), "{file}");
        person.took_at_most(1, 0);
        Ok(())
    })
    .await;
}

/// 2. All weights on eight GPUs: what each needs, by the strategy that shards them.
#[tokio::test]
async fn all_weights_on_eight_gpus() {
    walk("#/?model=llava-1.5-7b", async |page, person| {
        person.picks("say-model", "2.5-vl-7b").await?;
        person.fills("say-world", "8").await?;
        told(page, "verdict", "8 × H100 SXM").await?;
        person.sees("fits").await?;
        person.took_at_most(2, 11);
        page.fragment().is("#/?model=qwen2.5-vl-7b&world=8").await?;
        Ok(())
    })
    .await;
}

/// 3. The largest micro-batch of QLoRA on a card for games, and one press that takes it.
#[tokio::test]
async fn the_largest_batch_of_qlora() {
    walk(
        "#/?model=qwen2.5-vl-3b&gpu=RTX 4090&seq=1024&precision=amp-bf16&ckpt=full",
        async |page, person| {
            person.chooses("freeze", "qlora").await?;
            person.sees("fits").await?;
            person.click("to-section-sweep").await?;
            let found = page.value("largest-batch").present().await?;
            person.click("largest-batch-use").await?;
            page.prop("batch", "value").holds(&found).await?;
            person.took_at_most(4, 0);
            Ok(())
        },
    )
    .await;
}

/// 4. A recording of one's own script, dropped anywhere: its memory on another card.
#[tokio::test]
async fn a_recording_is_read() {
    walk("", async |page, person| {
        let bytes = std::fs::read(xtask::root().join(OF_TESTS)).expect("a recording");
        drop_bytes(page, ".plan", "run.vram.gz", &bytes).await?;
        // The calculator's own figures stay until the recording's page is there.
        page.find("recording-name").await?;
        page.value("peak-reserved").present().await?;
        person.picks("gpu", "h200").await?;
        told(page, "verdict", "H200").await?;
        person.took_at_most(1, 5);
        Ok(())
    })
    .await;
}

/// 5. Two setups beside each other, with what differs.
#[tokio::test]
async fn two_setups_are_compared() {
    walk("#/?model=gpt2", async |page, person| {
        person.click("pin").await?;
        person.chooses("optim", "sgd").await?;
        let cells =
            "return [...document.querySelectorAll('[data-testid=compare-needed]')].map(c => c.dataset.value ?? null)";
        let cells = || page.script::<Vec<Option<String>>>(cells);
        let both =
            |all: &Vec<Option<String>>| all.len() == 2 && all[0].is_some() && all[1].is_some() && all[0] != all[1];
        page.until("two amounts", cells, both).await?;
        person.took_at_most(3, 0);
        Ok(())
    })
    .await;
}

/// 6. The `config.json` of a family that is not known: why there is no answer, and how to get one.
#[tokio::test]
async fn an_unknown_family_is_refused_with_the_way_on() {
    walk("#/?model=gpt2", async |page, person| {
        person.click("from-config").await?;
        person.click("config").await?;
        let config = json!({ "model_type": "nobodys", "hidden_size": 64 }).to_string();
        page.find("config").await?.send_keys(&*config).await?;
        let why = told(page, "refusal", "nobodys").await?;
        assert!(why.contains("vramscope.record"), "{why}");
        // Nothing of the last model stands under the name of this one.
        page.value("peak-reserved").is(None).await?;
        person.took_at_most(2, usize::MAX);
        Ok(())
    })
    .await;
}

/// 7. The message of a crash: its cause, and the planner opened with a step that helps.
#[tokio::test]
async fn a_message_is_diagnosed() {
    walk("", async |page, person| {
        person.click("nav/diagnose").await?;
        person.click("diagnose-text").await?;
        let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 23.64 GiB \
                       of which 1.89 GiB is free. Including non-PyTorch memory, this process has 21.70 GiB memory in use. Of the allocated memory 21.45 GiB is \
                       allocated by PyTorch, and 54.00 MiB is reserved by PyTorch but unallocated.";
        page.find("diagnose-text").await?.send_keys(message).await?;
        person.click("diagnose-go").await?;
        told(page, "finding", "2.50 GiB").await?;
        person.took_at_most(3, 0);
        Ok(())
    })
    .await;
}

/// 8. On a phone: the verdict is in the first screen, and stays in sight while one scrolls to the entries.
#[tokio::test]
async fn on_a_phone_the_verdict_is_in_the_first_screen() {
    with_page("", async |page| {
        let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 3, "mobile": true });
        page.devtools("Emulation.setDeviceMetricsOverride", phone)
            .await?;
        page.go("#/?model=gpt2").await?;
        page.value("verdict").present().await?;
        let bottom = "return document.querySelector('[data-testid=verdict]').getBoundingClientRect().bottom";
        page.script::<f64>(bottom).until(|bottom| *bottom < 844.0).await?;
        let mut person = Person::at(page);
        person.fills("say-batch", "512").await?;
        person.sees("oom").await?;
        let shown = "const box = document.querySelector('.sticky-out .sticky-line, .headline .verdict').getBoundingClientRect();
            return box.bottom > 0 && box.top < innerHeight";
        let shown = || page.script::<bool>(shown);
        page.until("the verdict in sight", shown, |is| *is).await?;
        person.took_at_most(1, 3);
        Ok(())
    })
    .await;
}

/// 9. The first task without the mouse: the sentence from left to right.
#[tokio::test]
async fn the_first_task_is_done_by_keyboard_alone() {
    with_page("", async |page| {
        page.find("peak-allocated").await?;
        let mut person = Person::at(page);
        // The second of the links that are skipped to.
        person.presses(Key::Tab, 2).await?;
        person.presses(Key::Enter, 1).await?;
        person.focused().is("say-model").await?;
        person.types("2.5-vl-7b").await?;
        person.presses(Key::Enter, 1).await?;
        // Adapters are what a visit opens on.
        person.tabs_to("say-gpu").await?;
        person.types("4090").await?;
        person.presses(Key::Enter, 1).await?;
        person.tabs_to("say-seq").await?;
        person.types("65536").await?;
        person.sees("oom").await?;
        page.fragment().contains("seq=65536").await?;
        page.fragment().contains("freeze=lora").await?;
        person.took_at_most(0, 35);
        // On to a setup that fits, and the focus stays where it is.
        person.tabs_to("make-fit").await?;
        person.presses(Key::Enter, 1).await?;
        page.find("make-fit-panel").await?;
        person.focused().is("make-fit").await?;
        Ok(())
    })
    .await;
}

/// 10. In Chinese, from the choice of the language to a link that keeps it.
#[tokio::test]
async fn in_chinese() {
    walk("#/?model=llava-1.5-7b", async |page, person| {
        person.chooses("language", "zh-CN").await?;
        told(page, "verdict", "需要").await?;
        person
            .picks("say-model", "https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct")
            .await?;
        person.picks("say-gpu", "4090").await?;
        person.sees("oom").await?;
        page.text("make-fit")
            .until(|text| text.chars().any(|c| c > '一'))
            .await?;
        page.fragment().contains("model=Qwen%2FQwen2.5-VL-7B-Instruct").await?;
        person.took_at_most(4, usize::MAX);
        Ok(())
    })
    .await;
}

/// Pastes a text where the focus is: one press of keys held together.
async fn pastes(person: &mut Person<'_>, text: &str) -> WebDriverResult<()> {
    let paste = "const data = new DataTransfer(); data.setData('text/plain', arguments[0]); \
        (document.activeElement ?? document.body).dispatchEvent( \
            new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))";
    person.effort.keys += 1;
    person.page.run_with(paste, vec![text.into()]).await
}

/// 11. The id of a model that is not built in: typed into the first field, and what remains to be done.
#[tokio::test]
async fn an_id_that_is_not_built_in() {
    walk("", async |page, person| {
        let id = "Qwen/Qwen2.5-VL-3B-Instruct-AWQ";
        person.fills("intake", id).await?;
        person.presses(Key::Enter, 1).await?;
        page.fragment().contains("Qwen2.5-VL-3B-Instruct").await?;
        let answered = "return document.querySelector('[data-testid=verdict], [data-testid=hub-get], .hub') !== null";
        page.script::<bool>(answered).is(true).await?;
        person.took_at_most(1, id.len() + 1);
        Ok(())
    })
    .await;
}

/// 12. A launch file with ZeRO-3 and packing on eight cards: what is simulated of it and what is not.
#[tokio::test]
async fn a_launch_command_with_zero_3_and_packing() {
    with_page("", async |page| {
        page.value("verdict").present().await?;
        let mut person = Person::at(page);
        let command = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --tuner_type full --torch_dtype bfloat16 \
                       --max_length 4096 --packing true --attn_impl flash_attn --deepspeed zero3 --gradient_checkpointing true";
        pastes(&mut person, command).await?;
        page.text("launch-as").contains("ms-swift").await?;
        page.find("launch-taken").await?;
        person.took_at_most(0, 1);
        Ok(())
    })
    .await;
}

/// 13. GRPO with vLLM: pasted, and read as what it is.
#[tokio::test]
async fn grpo_with_vllm() {
    with_page("", async |page| {
        page.value("verdict").present().await?;
        let mut person = Person::at(page);
        let command = "trl grpo --model_name_or_path Qwen/Qwen2.5-0.5B-Instruct --use_vllm true --vllm_mode colocate \
                       --num_generations 8 --per_device_train_batch_size 8 --max_completion_length 512 --bf16 true";
        pastes(&mut person, command).await?;
        page.text("launch-as").contains("TRL").await?;
        page.find("launch-taken").await?;
        person.took_at_most(0, 1);
        Ok(())
    })
    .await;
}

/// 14. The message of a crash, pasted anywhere: its cause.
#[tokio::test]
async fn a_crash_is_one_paste() {
    with_page("", async |page| {
        page.value("verdict").present().await?;
        let mut person = Person::at(page);
        let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 23.64 GiB \
                       of which 1.89 GiB is free. Including non-PyTorch memory, this process has 21.70 GiB memory in use. Of the \
                       allocated memory 21.45 GiB is allocated by PyTorch, and 54.00 MiB is reserved by PyTorch but unallocated.";
        pastes(&mut person, message).await?;
        told(page, "finding", "2.50 GiB").await?;
        person.took_at_most(0, 1);
        Ok(())
    })
    .await;
}

/// 15. From out of memory to a launch file that fits.
#[tokio::test]
async fn out_of_memory_to_a_launch_file_that_fits() {
    walk(
        "#/?model=qwen2.5-vl-7b&gpu=RTX 4090&seq=4096&freeze=lora",
        async |_, person| {
            person.sees("oom").await?;
            person.click("make-fit").await?;
            person.click("make-fit-apply").await?;
            person.sees("fits").await?;
            let file = copied(person, "make-fit-copy").await?;
            assert!(file.contains("per_device_train_batch_size"), "{file}");
            person.took_at_most(3, 0);
            // What was done is undone where it is seen.
            person.click("undo-here").await?;
            person.sees("oom").await?;
            Ok(())
        },
    )
    .await;
}

/// 16. An embed: the verdict alone, with every setting that decides.
#[tokio::test]
async fn an_embed_is_a_widget() {
    walk("#/?model=gpt2", async |_, person| {
        person.click("share").await?;
        let code = copied(person, "copy-embed").await?;
        for part in [
            "<vramscope-widget",
            "model=\"gpt2\"",
            "widget=\"verdict\"",
            "optim=\"adamw\"",
        ] {
            assert!(code.contains(part), "{part}: {code}");
        }
        person.took_at_most(2, 0);
        Ok(())
    })
    .await;
}

/// 17. The largest length that fits the card, and what limits it.
#[tokio::test]
async fn the_largest_length_and_what_limits_it() {
    walk("#/?model=gpt2&batch=32&gpu=RTX 4060", async |page, person| {
        let row = "[data-testid=largest-row][data-name='RTX 4060']";
        person.click("to-section-sweep").await?;
        let samples = page.attr_at(row, "data-value").present().await?;
        person.chooses("sweep", "seq").await?;
        let largest = page.attr_at(row, "data-value");
        let largest = largest
            .until(|now| now.as_ref().is_some_and(|now| *now != samples))
            .await?
            .expect("it is there");
        page.attr_at(row, "data-limit").holds("memory").await?;
        person.click("largest-use").await?;
        page.prop("seq", "value").holds(&largest).await?;
        // The largest leaves less than a twentieth of the card.
        person.sees("tight").await?;
        person.took_at_most(4, 0);
        Ok(())
    })
    .await;
}
