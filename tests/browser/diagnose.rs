//! Tests the diagnosis page: pasted and opened input yields its findings in every language.

use thirtyfour::error::WebDriverError;
use thirtyfour::prelude::*;

use crate::page::{Page, Shown, with_page};

const FULL: &str = "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)";
const OTHERS: &str = "CUDA out of memory. Tried to allocate 26.00 MiB. GPU 0 has a total capacity of 15.57 GiB of which 23.06 MiB is free. Process 1001 has 12.57 GiB memory in use. Process 1002 has 2.10 GiB memory in use. Including non-PyTorch memory, this process has 510.00 MiB memory in use. Of the allocated memory 413.55 MiB is allocated by PyTorch, and 12.45 MiB is reserved by PyTorch but unallocated.";
const LEAK: &str = "Step 100: GPU memory 18.2 GB\nStep 200: GPU memory 18.5 GB\nStep 300: GPU memory 18.9 GB\nStep 400: GPU memory 19.4 GB\nStep 500: GPU memory 20.1 GB\nStep 600: GPU memory 20.9 GB\nStep 700: GPU memory 21.8 GB\nStep 800: GPU memory 22.9 GB\nStep 900: GPU memory 24.2 GB";
const GROWING: &str = "step 1 mem 18.6 GB\nstep 2 mem 18.8 GB\nstep 3 mem 19.0 GB\nstep 4 mem 19.2 GB\nstep 5 mem 19.4 GB\nstep 6 mem 19.6 GB\nstep 7 mem 19.8 GB\nstep 8 mem 20.0 GB\nstep 9 mem 20.2 GB\nstep 10 mem 20.4 GB";
const TABLE: &str = "Name  CPU %  CUDA %\naten::matmul  45.2%  52.1%\naten::softmax  12.3%  15.2%\nDataLoader  25.1%  0.0%\nnccl:all_reduce  8.5%  18.3%";
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/snapshots/gpt2-bf16.pickle.gz");

/// Name and certainty of each finding, in order.
fn findings(page: &Page) -> Shown<'_, Vec<(String, String)>> {
    let script =
        "return [...document.querySelectorAll('[data-testid=finding]')].map((f) => [f.dataset.name, f.dataset.value])";
    page.script(script)
}

async fn paste(page: &Page, text: &str) -> WebDriverResult<Vec<(String, String)>> {
    page.enter("diagnose-text", text).await?;
    page.click("diagnose-go").await?;
    page.until("findings", || findings(page), |all| !all.is_empty()).await
}

#[tokio::test]
async fn a_pasted_error_gives_its_cause() {
    with_page("#/diagnose", async |page| {
        let found = paste(page, FULL).await?;
        assert_eq!(found[0], ("out-of-capacity".into(), "likely".into()));
        assert!(
            found.contains(&("fragmentation".into(), "ruled-out".into())),
            "{found:?}"
        );
        page.text("finding").contains("2.50 GiB").await?;
        page.go("#/diagnose").await?;
        let found = paste(page, OTHERS).await?;
        assert_eq!(found[0], ("other-processes".into(), "cause".into()));
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// Pastes a text where the focus is.
const PASTE: &str = "const data = new DataTransfer(); data.setData('text/plain', arguments[0]); \
    (document.activeElement ?? document.body).dispatchEvent( \
        new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))";

/// A crash that is pasted on the planner, even into the field of the model, is diagnosed at once; Back returns.
#[tokio::test]
async fn a_crash_pasted_on_another_page_is_diagnosed() {
    with_page("#/?model=gpt2", async |page| {
        page.value("peak-allocated").present().await?;
        page.find("model").await?.focus().await?;
        page.run_with(PASTE, vec![OTHERS.into()]).await?;
        let is_known = |all: &Vec<(String, String)>| all.first().is_some_and(|(name, _)| name == "other-processes");
        findings(page).until(is_known).await?;
        page.fragment().contains("#/diagnose").await?;
        page.prop("diagnose-text", "value").holds(OTHERS).await?;
        page.back().await?;
        page.prop("model", "value").holds("gpt2").await?;
        // Elsewhere on the page of the diagnosis too.
        page.go("#/diagnose").await?;
        page.find("diagnose-go").await?;
        page.run("document.activeElement?.blur()").await?;
        page.run_with(PASTE, vec![FULL.into()]).await?;
        findings(page)
            .until(|all| all.first().is_some_and(|(name, _)| name == "out-of-capacity"))
            .await?;
        Ok(())
    })
    .await;
}

/// Each text to try has a cause; what is copied of it has no line of the text.
#[tokio::test]
async fn examples_are_explained_and_shared_without_their_text() {
    with_page("#/diagnose", async |page| {
        page.run("window.copied = null; navigator.clipboard.writeText = async (text) => { window.copied = text }")
            .await?;
        for (name, part) in [("step", "logits"), ("host", "SIGKILL"), ("growth", "from step to step")] {
            page.click_at(&format!("[data-testid=diagnose-example][data-name={name}]"))
                .await?;
            page.text("finding").named(name).contains(part).await?;
        }
        page.text("quotes").contains("total_loss += loss").await?;
        page.click("diagnose-share").await?;
        let shared = page.script::<Option<String>>("return window.copied").present().await?;
        assert!(shared.contains("from step to step"), "{shared}");
        assert!(!shared.contains("total_loss") && !shared.contains("21.4"), "{shared}");
        Ok(())
    })
    .await;
}

/// Rows 9.8, 9.4 and 11.1 of the course, one after another on the same page.
#[tokio::test]
async fn the_course_s_logs_and_tables_give_their_causes() {
    with_page("#/diagnose", async |page| {
        for (text, name, standing) in [(LEAK, "leak", "cause"), (TABLE, "data-loading", "cause")] {
            page.go("#/diagnose").await?;
            let found = paste(page, text).await?;
            assert_eq!(found[0], (name.into(), standing.into()), "{found:?}");
        }
        let is_communication =
            |all: &Vec<(String, String)>| all.get(1).is_some_and(|(name, _)| name == "communication");
        findings(page).until(is_communication).await?;
        let row = page.attr("finding-row", "href").present().await?;
        assert!(row.contains("#/course?row=11."), "{row}");
        page.go("#/diagnose?gpu=RTX%203090").await?;
        paste(page, GROWING).await?;
        // (22.4 ÷ 23.7 − 0.85) ÷ 0.15, relative to the memory that the card leaves to programs.
        page.text("finding").contains("risk 0.63").await?;
        Ok(())
    })
    .await;
}

/// With a named run, each step shows its saving and links to the planner.
#[tokio::test]
async fn a_named_run_gives_each_step_its_bytes() {
    with_page("#/diagnose?model=gpt2&batch=4&seq=512", async |page| {
        paste(page, FULL).await?;
        let saving = page.value("saving").present().await?;
        assert!(saving.starts_with('-'), "{saving}");
        let fix = page.value("fix").present().await?;
        let name = page.attr("fix", "data-name").present().await?;
        page.until(
            "the ladder",
            || page.value("rung"),
            |value| value.as_deref() == Some("true"),
        )
        .await?;
        // The saving equals the difference between the planner's results.
        let reserved = async |fragment: &str| {
            page.go(fragment).await?;
            let shown = page.value("peak-reserved").present().await?;
            Ok::<i64, WebDriverError>(shown.parse().expect("bytes"))
        };
        let before = reserved("#/?model=gpt2&batch=4&seq=512").await?;
        let after = reserved(
            &format!("#/?model=gpt2&batch=4&seq=512&{name}").replace("&batch=4&seq=512&batch", "&seq=512&batch"),
        )
        .await?;
        assert_eq!(fix, (after - before).to_string(), "{name}");
        Ok(())
    })
    .await;
}

/// Evidence ticks what it answers; other items are ticked by hand and stored.
#[tokio::test]
async fn checklists_tick_themselves() {
    with_page("#/diagnose", async |page| {
        paste(page, FULL).await?;
        page.click_at("[data-testid=checklists] summary").await?;
        let ticked = || page.script::<Vec<(String, String)>>("return [...document.querySelectorAll('[data-testid=check]')].map((c) => [c.dataset.name, c.dataset.value])");
        let all = page.until("the lists", ticked, |all| all.len() > 20).await?;
        let of = |all: &[(String, String)], name: &str| all.iter().find(|(n, _)| n == name).map(|(_, by)| by.clone());
        assert_eq!(of(&all, "9.lists/minutes/1").as_deref(), Some("evidence"));
        assert_eq!(of(&all, "9.diagnose/five/1").as_deref(), Some("evidence"));
        assert_eq!(of(&all, "9.lists/after/0").as_deref(), Some(""));
        let by_hand = "document.querySelector('[data-name=\"9.lists/after/0\"] input').click()";
        page.run(by_hand).await?;
        page.go("#/diagnose").await?;
        page.click_at("[data-testid=checklists] summary").await?;
        page.until("the tick", ticked, |all| of(all, "9.lists/after/0").as_deref() == Some("hand"))
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_opened_snapshot_shows_its_curve_in_every_language() {
    with_page("#/diagnose", async |page| {
        let input = page.find("diagnose-files").await?;
        input.send_keys(SNAPSHOT).await?;
        let found = page.until("findings", || findings(page), |all| !all.is_empty()).await?;
        assert!(found.iter().any(|(name, _)| name == "peak"), "{found:?}");
        page.find("recording").await?;
        look_around(page).await?;
        for (language, words) in [("zh-CN", "激活"), ("zh-TW", "保留")] {
            page.choose("language", language).await?;
            let said = page.text_at("#results").contains(words).await?;
            assert!(!said.contains("{0}") && !said.contains("t_peak"), "{said}");
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// Checks that the peak is listed first, that the keyboard moves and zooms, and that the other stacking has its own
/// legend.
async fn look_around(page: &Page) -> WebDriverResult<()> {
    let live = || page.value("live");
    let peak = page.until("the peak", live, Option::is_some).await?;
    assert_eq!(peak.as_deref(), Some("1984555520"), "as the command line has it");
    let paths = || page.script::<usize>("return document.querySelectorAll('[data-testid=curve] path').length");
    page.until("layers", paths, |count| *count >= 4).await?;
    let slider = page.find("instant-slider").await?;
    slider.focus().await?;
    slider.send_keys(Key::Home).await?;
    page.until("the beginning", live, |now| *now != peak).await?;
    slider.send_keys("+").await?;
    let span = || page.text("span");
    page.until("closer", span, |text| !text.contains("5993")).await?;
    slider.send_keys(Key::Escape).await?;
    page.until("the peak again", live, |now| *now == peak).await?;
    page.click("v_by_frame").await?;
    let legend = || page.text("legend");
    page.until("places", legend, |text| text.contains("modeling_gpt2.py"))
        .await?;
    let segments = "return document.querySelectorAll('[data-testid=segment] rect').length";
    page.script::<usize>(segments).until(|count| *count > 3).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_not_understood_is_answered_with_what_is() {
    with_page("#/diagnose", async |page| {
        page.enter("diagnose-text", "my model does not train").await?;
        page.click("diagnose-go").await?;
        let shown = page
            .until("answer", || page.value("diagnosis"), Option::is_some)
            .await?;
        assert_eq!(shown.as_deref(), Some("1"));
        page.text("finding").contains("nvidia-smi").await?;
        page.text("finding").contains("vramscope dry-run").await?;
        Ok(())
    })
    .await;
}
