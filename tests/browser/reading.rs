//! Tests that every number shows its derivation and that every text is translated.

use thirtyfour::prelude::*;

use crate::Page;
use crate::page::{Shown, with_page};

fn derived(page: &Page) -> Shown<'_, Option<String>> {
    page.value("derivation-result")
}

fn is_open(page: &Page) -> Shown<'_, bool> {
    let script = "return document.querySelector('#derivation').matches(':popover-open')";
    page.script(script)
}

#[tokio::test]
async fn each_figure_opens_a_formula_that_comes_to_it() {
    with_page("#/?model=tinyllava-1.5b", async |page| {
        for testid in [
            "peak-allocated",
            "peak-reserved",
            "outside-torch",
            "logits",
            "params",
            "trainable",
            "positions",
            "image-tokens",
        ] {
            let value = page.value(testid).present().await?;
            page.click(testid).await?;
            derived(page).named(testid).holds(&value).await?;
            let shown = page.text("derivation").nonempty().await?;
            assert!(
                shown.contains("Source") && shown.contains("Formula"),
                "{testid}: {shown}"
            );
            page.keys(Key::Escape + "").await?;
            page.until("closed", || is_open(page), |open| !open).await?;
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_term_opens_its_own_formula_down_to_the_shapes_and_back() {
    with_page("#/?model=gpt2", async |page| {
        let line = "return document.querySelector('[data-testid=breakdown-row].depth-2').dataset.value";
        let value = page.script::<Option<String>>(line).present().await?;
        page.click_at("[data-testid=breakdown-row].depth-2 .breakdown-bytes button")
            .await?;
        derived(page).named("the kind").holds(&value).await?;
        for level in ["a layer", "a tensor"] {
            let before = derived(page).present().await?;
            page.click_at(".parts .explained").await?;
            let is_next = |now: &Option<String>| now.as_ref().is_some_and(|now| *now != before);
            page.until(level, || derived(page), is_next).await?;
        }
        // Dimensions of a shape, and bytes per element.
        let numbers = page.text("derivation-numbers").nonempty().await?;
        assert!(numbers.contains(" × "), "{numbers}");
        page.click("derivation-back").await?;
        page.click("derivation-back").await?;
        derived(page).named("back at the kind").holds(&value).await?;
        Ok(())
    })
    .await;
}

/// Happens with a keyboard, a screen reader, or content that grows between aiming and clicking.
#[tokio::test]
async fn a_number_beyond_the_window_opens_its_panel_within() {
    with_page("#/?model=gpt2", async |page| {
        page.find("breakdown-row").await?;
        for beyond in ["-window.innerHeight", "window.innerHeight"] {
            let press = format!(
                "const number = document.querySelector('[data-testid=breakdown-row] .explained');
                number.style.cssText = `position: fixed; top: ${{2 * {beyond}}}px`;
                number.click();
                number.style.cssText = ''"
            );
            page.run(press).await?;
            page.until("told", || derived(page), Option::is_some).await?;
            let within = "const { top, bottom } = document.querySelector('#derivation').getBoundingClientRect();
                return [top, window.innerHeight - bottom]";
            let edges = page.script::<[f64; 2]>(within).named(beyond);
            edges.until(|edges| edges.iter().all(|edge| *edge >= 0.0)).await?;
            page.keys(Key::Escape + "").await?;
            page.until("closed", || is_open(page), |open| !open).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_open_explanation_follows_the_entries() {
    with_page("#/?model=gpt2", async |page| {
        page.click("peak-allocated").await?;
        let before = derived(page).present().await?;
        page.run("location.hash = '#/?model=gpt2&batch=8'").await?;
        let peak = page.changed("peak-allocated", &before).await?;
        derived(page).holds(&peak).await?;
        Ok(())
    })
    .await;
}

/// Names from code stay untranslated; sentences do not.
#[tokio::test]
async fn why_tensors_live_and_formulas_are_in_each_language() {
    with_page("#/?model=gpt2&lang=zh-CN", async |page| {
        for (lang, kept, formula, weights) in [("zh-CN", "保留", "公式", "权重"), ("zh-TW", "保留", "公式", "權重")]
        {
            page.go(&format!("#/?model=gpt2&lang={lang}")).await?;
            page.click("peak-allocated").await?;
            page.until("panel", || page.text("derivation"), |text| text.contains(formula))
                .await?;
            page.find("breakdown-row").await?;
            page.find("instant").await?;
            let list = page.text("instant").nonempty().await?;
            assert!(list.contains(kept) && !list.contains("kept"), "{list}");
            let names = "return [...document.querySelectorAll('[data-testid=breakdown-row].depth-2 th')]
                .map(e => e.textContent).join()";
            page.script::<String>(names).contains(weights).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn lines_of_the_breakdown_change_with_the_language() {
    with_page("#/?model=gpt2", async |page| {
        page.find("breakdown-row").await?;
        let names =
            || page.script::<String>("return document.querySelector('[data-testid=breakdown-row] th').textContent");
        let english = names().nonempty().await?;
        page.choose("language", "zh-CN").await?;
        page.until("its name", names, |now| *now != english && !now.is_empty())
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn counts_are_in_the_units_of_the_language() {
    with_page("#/?model=gpt2", async |page| {
        for (lang, shown) in [("en", "124 M"), ("zh-CN", "1.24 亿"), ("zh-TW", "1.24 億")] {
            page.go(&format!("#/?model=gpt2&lang={lang}")).await?;
            page.until(lang, || page.text("params"), |text| text == shown).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_model_that_does_not_train_shows_what_it_takes() {
    with_page("#/?model=qwen2.5-0.5b&phase=generate&new_tokens=64", async |page| {
        let cache: u64 = page
            .until("the cache", || page.value("cache"), Option::is_some)
            .await?
            .expect("it is there")
            .parse()
            .expect("bytes");
        // 24 layers, keys and values, 2 heads of 64, bf16, for 2048 positions and all new tokens but the last.
        assert_eq!(cache, 24 * 2 * (2048 + 63) * 2 * 64 * 2);
        page.value("verdict").present().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn each_entry_says_in_a_sentence_what_it_means() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.find("peak-allocated").await?;
        let script = "return [...document.querySelectorAll('.controls [aria-describedby]')].filter(e =>
            !e.getAttribute('aria-describedby').split(' ').some(id => id.startsWith('help-')
                && document.getElementById(id)?.textContent.length > 20)).map(e => e.id || e.className)";
        page.script::<Vec<String>>(script).is(Vec::<String>::new()).await?;
        let help = || page.script::<bool>("return document.querySelector('#help-optim').checkVisibility()");
        help().is(false).await?;
        page.click_at("[aria-controls=help-optim]").await?;
        help().is(true).await?;
        Ok(())
    })
    .await;
}

/// Clicks a number and waits until its formula yields its value.
async fn opens(page: &Page, button: &str, value: &str) -> WebDriverResult<()> {
    page.click_at(button).await?;
    let wanted = Some(value.to_owned());
    page.until(button, || derived(page), |found| *found == wanted).await?;
    page.keys(Key::Escape + "").await?;
    page.until("closed", || is_open(page), |open| !open).await?;
    Ok(())
}

#[tokio::test]
async fn figures_of_evaluation_and_generation_open_their_formulas() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        for task in ["phase=evaluate&use_cache=true", "phase=generate&new_tokens=16"] {
            page.go(&format!("#/?model=qwen2.5-0.5b&seq=256&{task}")).await?;
            for testid in [
                "peak-allocated",
                "peak-reserved",
                "after-model",
                "with-outputs",
                "cache",
                "params",
            ] {
                let value = page.value(testid).present().await?;
                assert_ne!(value, "0", "{testid}");
                opens(page, &format!("[data-testid={testid}]"), &value).await?;
            }
            // The breakdown and the timeline are shown as for a training step.
            page.find("breakdown-row").await?;
            page.see("timeline-place").await?;
            page.find("timeline").await?;
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_a_change_does_opens_two_peaks_and_each_of_them_its_segments() {
    with_page("#/?model=gpt2&seq=512", async |page| {
        let row = "[data-testid=what-if-row][data-name='optim=sgd']";
        let change = "return document.querySelector(arguments[0]).dataset.value";
        let bytes = page.script_with::<Option<String>>(change, vec![row.into()]);
        let bytes: i64 = bytes.present().await?.parse().expect("a whole number");
        let now: u64 = page.value("peak-reserved").present().await?.parse().expect("bytes");
        page.click_at(&format!(".what-if-line:has({row}) .explained")).await?;
        let difference = Some(bytes.unsigned_abs().to_string());
        page.until("the difference", || derived(page), |found| *found == difference)
            .await?;
        // The smaller of the two peaks belongs to the change.
        page.click_at(".parts tr:nth-child(2) .explained").await?;
        let then = Some(now.checked_add_signed(bytes).expect("bytes").to_string());
        page.until("the peak of the change", || derived(page), |found| *found == then)
            .await?;
        page.text("derivation").contains("after the change").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn figures_of_a_sweep_open_their_formulas() {
    with_page("#/?model=gpt2&seq=256&gpu=RTX%204060", async |page| {
        let place = page.find("sweep-place").await?;
        place.scroll_into_view().await?;
        let done = || page.value("sweep-state");
        page.find("largest-row").await?;
        page.until("the sweep", done, |now| now.as_deref() == Some("done"))
            .await?;
        for testid in ["sweep-needed", "sweep-allocated"] {
            let value = page.value(testid).present().await?;
            opens(page, &format!("[data-testid={testid}] .explained"), &value).await?;
        }
        Ok(())
    })
    .await;
}
