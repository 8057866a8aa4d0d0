//! Tests the controls of the plan page.

use thirtyfour::prelude::*;

use crate::page::with_page;

#[tokio::test]
async fn typing_a_number_changes_the_values_and_the_url() {
    with_page("#/?model=gpt2&seq=1024", async |page| {
        let before = page.value("peak-allocated").present().await?;
        page.enter("batch", "16").await?;
        page.changed("peak-allocated", &before).await?;
        page.fragment().is("#/?model=gpt2&batch=16&seq=1024").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn choosing_an_optimizer_changes_the_values() {
    with_page("#/?model=gpt2", async |page| {
        let before = page.value("peak-allocated").present().await?;
        page.choose("optim", "sgd").await?;
        let after = page.changed("peak-allocated", &before).await?;
        let number = |v: &str| v.parse::<u64>().expect("bytes");
        assert!(
            number(&after) < number(&before),
            "SGD has no states: {after:?}, was {before:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_model_is_found_by_typing_a_part_of_its_name() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let before = page.value("params").present().await?;
        page.enter("model", "gpt2-me").await?;
        page.find("model").await?.send_keys(Key::Enter + "").await?;
        page.changed("params", &before).await?;
        page.fragment().is("#/?model=gpt2-medium").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_smaller_card_changes_the_verdict() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let before = page.value("verdict").present().await?;
        page.enter("gpu", "4060 8").await?;
        page.enter("gpu", "RTX 4060").await?;
        page.find("gpu").await?.send_keys(Key::Enter + "").await?;
        assert_eq!(page.changed("verdict", &before).await?, "oom");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn only_what_means_something_for_the_model_is_asked() {
    with_page("#/?model=gpt2", async |page| {
        let there = "return ['seq', 'images', 'image'].map(t => !!document.querySelector(`input[data-testid=${t}]`))";
        page.script::<Vec<bool>>(there).is([true, false, false]).await?;
        let freeze = "return [...document.querySelectorAll('[data-testid=freeze] option')].map(o => o.value)";
        page.script::<Vec<String>>(freeze).is(["none", "lora", "qlora"]).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_card_of_this_machine_is_the_one_that_webgl_names() {
    with_page("#/?model=gpt2&gpu=H200", async |page| {
        // Chromium draws by software here, if at all.
        page.click("own-card").await?;
        let said = || page.text("own-card-said");
        page.until("what is said", said, |said| said.contains("does not say"))
            .await?;
        let fake = "const own = HTMLCanvasElement.prototype.getContext, name = arguments[0];
            const names = { UNMASKED_RENDERER_WEBGL: 1, loseContext() {} };
            const gl = { getExtension: () => names, getParameter: () => name };
            HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
                return kind === 'webgl' ? gl : own.call(this, kind, ...rest);
            }";
        for (renderer, address, words) in [
            (
                "ANGLE (Intel, Mesa Intel(R) Iris(R) Xe Graphics, OpenGL 4.6)",
                "gpu=H200",
                "Iris",
            ),
            (
                "ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 (0x2684) Direct3D11 vs_5_0, D3D11)",
                "gpu=RTX%204090",
                "",
            ),
            (
                "ANGLE (Apple, ANGLE Metal Renderer: Apple M3 Max, Unspecified Version)",
                "gpu=M3%20Max%2036GB",
                "M3 Max 128GB",
            ),
        ] {
            page.run_with(fake, vec![renderer.into()]).await?;
            page.click("own-card").await?;
            page.until("the card", || page.fragment(), |fragment| fragment.contains(address))
                .await?;
            page.until("what is said", said, |said| {
                said.is_empty() == words.is_empty() && said.contains(words)
            })
            .await?;
        }
        page.text("not-cuda").contains("Apple").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn pointing_at_the_timeline_lists_what_is_live_there() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let title = || page.script::<String>("return document.querySelector('.instant h3').textContent");
        // Wait for the content above, so that nothing moves under the pointer.
        page.find("what-if-row").await?;
        page.see("timeline-place").await?;
        page.find("instant").await?;
        let at_peak = title().nonempty().await?;
        let timeline = page.find("timeline").await?;
        page.point_at(&timeline, -60).await?;
        let here = page.until("the list's title", title, |now| *now != at_peak).await?;
        assert!(here.starts_with("Here:"), "{here}");
        timeline.send_keys(Key::Home + "").await?;
        page.until("the keyboard's instant", title, |now| *now != here).await?;
        Ok(())
    })
    .await;
}

/// While an entry has the focus, the runs that one key press would request are prefetched, so the press is answered
/// before the browser does anything else. A quarter of a second after focusing there is no other source for them:
/// single changes are tried only after entries have rested for longer.
#[tokio::test]
async fn what_a_press_asks_for_is_ready() {
    let press = "const done = arguments[arguments.length - 1];\
        const field = document.querySelector('[data-testid=seq]');\
        const shown = () => document.querySelector('[data-testid=peak-allocated]').dataset.value;\
        field.focus();\
        setTimeout(async () => {\
            const before = shown();\
            field.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true }));\
            for (let turn = 0; turn < 50; turn += 1) await null;\
            done(shown() !== before);\
        }, 250)";
    with_page("#/?model=qwen2.5-0.5b&seq=64", async |page| {
        page.value("peak-allocated").present().await?;
        // Each length is new. On a busy machine the worker is late for many of them.
        let mut presses = 0;
        while !page.promise::<bool>(press, vec![]).await? {
            presses += 1;
            assert!(presses < 40, "no press was answered at once");
        }
        let entered = page.prop("seq", "value").present().await?;
        let wanted = format!("#/?model=qwen2.5-0.5b&seq={}", entered.replace(',', ""));
        page.until("the steps up", || page.fragment(), |fragment| *fragment == wanted)
            .await?;
        Ok(())
    })
    .await;
}

/// Likewise, the runs that typing or deleting one digit would request are prefetched.
#[tokio::test]
async fn what_a_key_asks_for_is_ready() {
    let key = "const [command, text, done] = arguments;\
        const field = document.querySelector('[data-testid=batch]');\
        const shown = () => document.querySelector('[data-testid=peak-allocated]').dataset.value;\
        field.focus();\
        field.click();\
        setTimeout(async () => {\
            const before = shown();\
            document.execCommand(command, false, text);\
            for (let turn = 0; turn < 50; turn += 1) await null;\
            done(shown() !== before);\
        }, 250)";
    with_page("#/?model=gpt2&seq=64", async |page| {
        page.value("peak-allocated").present().await?;
        let caret = "const field = document.querySelector('[data-testid=batch]'); field.focus(); field.select();";
        page.run(caret).await?;
        let mut answered = 0;
        for (command, text) in [
            ("insertText", "2"),
            ("insertText", "4"),
            ("delete", ""),
            ("insertText", "7"),
        ] {
            let pressed: bool = page.promise(key, vec![command.into(), text.into()]).await?;
            answered += u32::from(pressed);
        }
        assert!(answered > 0, "no key was answered at once");
        let is_there = |fragment: &String| fragment == "#/?model=gpt2&batch=27&seq=64";
        page.until("what was typed", || page.fragment(), is_there).await?;
        Ok(())
    })
    .await;
}

/// The usual length is more than GPT-2 has positions for: the field names the length that runs, and takes the usual one
/// as it is given.
#[tokio::test]
async fn an_empty_length_is_the_models_own() {
    with_page("#/?model=gpt2", async |page| {
        let own = page.value("peak-allocated").present().await?;
        page.prop("seq", "placeholder").holds("1024").await?;
        let heads = "return [...document.querySelectorAll('.what-if-group h3')].map(e => e.innerText).join()";
        let heads = || page.script::<String>(heads);
        page.until("its place among the changes", heads, |heads| {
            heads.contains("now: 1024")
        })
        .await?;
        page.find("seq").await?.send_keys(Key::Down).await?;
        let is_stepped = |fragment: &String| fragment == "#/?model=gpt2&seq=768";
        page.until("a step down", || page.fragment(), is_stepped).await?;
        page.enter("seq", "2048").await?;
        page.find("refusal").await?;
        page.find("seq").await?.send_keys(Key::Control + "a").await?;
        page.find("seq").await?.send_keys(Key::Delete).await?;
        page.value("peak-allocated").named("the first peak").holds(&own).await?;
        let is_of_model = |fragment: &String| fragment == "#/?model=gpt2";
        page.until("the model alone", || page.fragment(), is_of_model).await?;
        Ok(())
    })
    .await;
}

/// The first digits of a number are rarely a valid setup, so the last figures stay until the user pauses.
#[tokio::test]
async fn figures_stay_while_a_number_is_typed() {
    let typing = "const [keys, done] = arguments;\
        const field = document.querySelector('[data-testid=seq]');\
        let gone = false;\
        const look = () => { gone ||= !document.querySelector('[data-testid=peak-allocated]'); };\
        new MutationObserver(look).observe(document.getElementById('results'), { subtree: true, childList: true });\
        field.focus();\
        field.select();\
        const press = (at) => {\
            if (at === keys.length) return done(gone);\
            document.execCommand('insertText', false, keys[at]);\
            setTimeout(press, 60, at + 1);\
        };\
        press(0)";
    with_page("#/?model=llava-1.5-7b", async |page| {
        let peak = page.value("peak-allocated").present().await?;
        let gone: bool = page.promise(typing, vec!["2560".into()]).await?;
        assert!(!gone, "2 positions have no room for an image");
        page.changed("peak-allocated", &peak).await?;
        page.promise::<bool>(typing, vec!["25".into()]).await?;
        page.find("refusal").await?;
        page.promise::<bool>(typing, vec!["2048".into()]).await?;
        page.value("peak-allocated").present().await?;
        Ok(())
    })
    .await;
}
