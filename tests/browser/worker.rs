//! Tests what the page asks of the engine's worker: the newest request is answered, work can be stopped, and the page's
//! entries survive a crash of the worker or of the page itself.

use serde_json::{Value, json};
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::with_page;
use crate::same_bytes::command_line;

/// Runs a script before the page's own scripts at every later load.
async fn before_load(page: &Page, script: &str) -> WebDriverResult<()> {
    let params = json!({ "source": script });
    let method = "Page.addScriptToEvaluateOnNewDocument";
    page.devtools(method, params).await?;
    Ok(())
}

/// Script that stores the page's workers where a test can reach them.
const KEEP_WORKERS: &str = "globalThis.workers = [];\
    globalThis.Worker = class extends Worker { constructor(...a) { super(...a); workers.push(this); } };";

/// Waits until the page shows a simulated run, and returns its peak.
async fn first_peak(page: &Page) -> WebDriverResult<String> {
    page.value("peak-allocated").present().await
}

#[tokio::test]
async fn after_quick_entries_the_last_is_shown_and_no_older_answer_follows_a_newer() {
    with_page("#/?model=gpt2&gpu=H200&seq=512", async |page| {
        first_peak(page).await?;
        let type_fast = "const shown = [], field = document.querySelector('[data-testid=batch]'),\
            peak = () => Number(document.querySelector('[data-testid=peak-allocated]').dataset.value);\
            new MutationObserver(() => { if (peak() !== shown.at(-1)) shown.push(peak()); })\
              .observe(document.getElementById('results'), { subtree: true, childList: true, attributes: true });\
            globalThis.shown = shown;\
            for (let batch = 2; batch <= 16; batch++) {\
              field.value = batch; field.dispatchEvent(new Event('input', { bubbles: true }));\
              await new Promise(done => setTimeout(done));\
            }";
        page.promise::<Value>(
            &format!("const done = arguments[0]; (async () => {{ {type_fast} }})().then(done)"),
            vec![],
        )
        .await?;
        let line = command_line(&[json!({ "model": "gpt2", "seq": 512, "batch": 16 })
            .as_object()
            .cloned()
            .unwrap_or_default()]);
        let expected = line[0]["peak_allocated"].to_string();
        page.until(
            "the last entry's peak",
            || page.value("peak-allocated"),
            |now| now.as_ref() == Some(&expected),
        )
        .await?;
        // Peaks rise with the batch: if a smaller peak followed a larger one, an older answer came after a newer one.
        let shown = page.script::<Vec<u64>>("return shown");
        shown.until(|shown| shown.is_sorted_by(|a, b| a < b)).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_crash_of_the_worker_keeps_the_state_and_the_next_entry_works() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        before_load(page, KEEP_WORKERS).await?;
        page.go("#/?model=gpt2&batch=2").await?;
        let before = first_peak(page).await?;
        // The page never sends this message; it makes the worker's program panic.
        page.run("workers.at(-1).postMessage(new ArrayBuffer(1))").await?;
        let report = page
            .until("the panel of the fault", || page.text("fault"), |t| !t.is_empty())
            .await?;
        let version = concat!("VRAMscope ", env!("CARGO_PKG_VERSION"));
        for part in ["cannot be read", "#/?model=gpt2&batch=2", "Mozilla/5.0", version] {
            assert!(report.contains(part), "no {part} in {report}");
        }
        // The old result stays.
        page.value("peak-allocated").holds(&before).await?;
        page.enter("batch", "3").await?;
        page.changed("peak-allocated", &before).await?;
        page.until("no panel of a fault", || page.text("fault"), String::is_empty)
            .await?;
        page.fragment().is("#/?model=gpt2&batch=3").await?;
        // A new worker answers, and it can crash again.
        page.run("workers.at(-1).postMessage(new ArrayBuffer(1))").await?;
        page.until("the panel of the fault", || page.text("fault"), |t| !t.is_empty())
            .await?;
        page.enter("batch", "4").await?;
        page.until("no panel of a fault", || page.text("fault"), String::is_empty)
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_crash_of_the_page_offers_a_reload_that_keeps_the_entries() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        before_load(page, KEEP_WORKERS).await?;
        page.go("#/?model=gpt2&batch=2&lang=zh-TW").await?;
        let before = first_peak(page).await?;
        // The worker never sends this message; it makes the page's program panic.
        let answer = "workers.at(-1).dispatchEvent(new MessageEvent('message', { data: new ArrayBuffer(1) }))";
        page.run(answer).await?;
        let panel = page
            .until("the panel of the fault", || page.text("fault"), |t| !t.is_empty())
            .await?;
        assert!(
            panel.contains("重新載入") && panel.contains("cannot be read"),
            "{panel}"
        );
        // The page is not blank.
        page.value("peak-allocated").present().await?;
        page.run("document.querySelector('[data-testid=copy-report]').click()")
            .await?;
        page.script::<String>("return getSelection().toString()")
            .contains("batch=2")
            .await?;
        // The second button reloads the page.
        page.run("document.querySelector('.fault-tools :nth-child(2)').click()")
            .await?;
        page.until("a fresh page", || page.text("fault"), String::is_empty)
            .await?;
        page.value("peak-allocated").holds(&before).await?;
        page.fragment().contains("batch=2").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn without_workers_the_page_simulates_by_itself() {
    let refusals = [
        "globalThis.Worker = class { constructor() { throw new DOMException('refused', 'SecurityError'); } }",
        // As if a policy blocked it: the worker is created, and an error event reports that it does not start.
        "globalThis.Worker = class extends Worker { constructor() { super('data:,nothing', { type: 'module' }); } }",
    ];
    for refusal in refusals {
        with_page("#/?model=gpt2&batch=2", async |page| {
            let by_worker = first_peak(page).await?;
            before_load(page, refusal).await?;
            page.go("#/?model=gpt2&batch=2").await?;
            page.value("peak-allocated").holds(&by_worker).await?;
            page.enter("batch", "3").await?;
            page.changed("peak-allocated", &by_worker).await?;
            Ok(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_pointer_on_the_timeline_lists_the_tensors_of_its_instant() {
    with_page("#/?model=gpt2", async |page| {
        page.see("timeline-place").await?;
        page.find("instant").await?;
        let title = || page.text_at(".instant h3");
        let at_peak = title().nonempty().await?;
        let point = "const frame = document.querySelector('[data-testid=timeline]'), box = frame.getBoundingClientRect();\
            for (const share of [0.3, 0.5, 0.7, 0.2]) frame.dispatchEvent(new PointerEvent('pointermove',\
              { clientX: box.left + box.width * share, clientY: box.top + 9, bubbles: true }))";
        page.run(point).await?;
        page.until("another instant", title, |now| *now != at_peak).await?;
        let spoken = "return document.querySelector('[data-testid=timeline]').ariaValueText";
        let now = "return document.querySelector('[data-testid=timeline]').ariaValueNow";
        let instant = page.script::<String>(now).nonempty().await?;
        page.script::<String>(spoken).contains(&instant).await?;
        let leave = "document.querySelector('[data-testid=timeline]').dispatchEvent(new PointerEvent('pointerleave'))";
        page.run(leave).await?;
        page.until("the peak", title, |now| *now == at_peak).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn long_work_shows_its_progress_and_can_be_stopped() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        // A script clicks *Stop* as soon as it appears; a click of the driver could come too late.
        let press = "globalThis.pressed = null;\
            new MutationObserver(() => {\
              const stop = document.querySelector('[data-testid=stop]');\
              if (stop && pressed === null) { pressed = document.querySelector('.progress progress')?.max ?? 0; stop.click(); }\
            }).observe(document, { subtree: true, childList: true })";
        before_load(page, press).await?;
        page.go("#/?model=Qwen/Qwen2.5-VL-72B-Instruct&seq=8192").await?;
        first_peak(page).await?;
        page.script::<Option<f64>>("return pressed").named("progress").present().await?;
        let rows = || page.script::<usize>("return document.querySelectorAll('[data-testid=what-if-row]').length");
        let over = "return document.querySelector('[data-testid=what-if]').dataset.over";
        page.script::<String>(over).named("the end").is("true").await?;
        // If changes were still tried, their results would have arrived by then.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        rows().is(0_usize).await?;
        page.text("progress").is("").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_newer_entry_interrupts_a_long_simulation() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        before_load(page, KEEP_WORKERS).await?;
        page.go("#/?model=gpt2&batch=2").await?;
        let small = first_peak(page).await?;
        // Takes seconds in a single simulation: a call of attention for each of 98,304 windows.
        let long = "location.hash = '#/?model=Qwen/Qwen2.5-VL-72B-Instruct&batch=48&grid=64x64&seq=2048&attn=eager&precision=amp-bf16'";
        page.run(long).await?;
        // Longer than the second after which the page abandons a silent worker.
        tokio::time::sleep(std::time::Duration::from_millis(1300)).await;
        let busy = "return document.getElementById('results').ariaBusy";
        // The old result is marked as outdated, and stays.
        page.script::<String>(busy).is("true").await?;
        page.value("peak-allocated").holds(&small).await?;
        page.run("location.hash = '#/?model=gpt2&batch=3'").await?;
        page.changed("peak-allocated", &small).await?;
        page.script::<usize>("return workers.length").is(2_usize).await?;
        page.script::<String>(busy).is("false").await?;
        page.no_fault().await
    })
    .await;
}
