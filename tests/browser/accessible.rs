//! Tests accessibility: axe-core finds nothing serious in any language, theme or width.

use serde_json::json;
use thirtyfour::error::WebDriverResult;
use xtask::tools;

use crate::Page;
use crate::page::with_page;
use crate::recorded::drop_bytes;

/// Runs axe-core's rules for WCAG 2.2 A and AA and its best practices; returns serious and critical violations.
const RUN: &str = "
    const done = arguments[arguments.length - 1];
    const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    axe.run(document, { runOnly }).then(
        ({ violations }) => done(violations
            .filter(v => ['serious', 'critical'].includes(v.impact))
            .map(v => `${v.id}: ${v.nodes.map(n => n.html).join(' ')}`)),
        error => done([String(error)]));";

pub async fn findings(page: &Page) -> WebDriverResult<Vec<String>> {
    // Elements fade while work starts and ends, which would lower their contrast.
    let media = json!({"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]});
    page.devtools("Emulation.setEmulatedMedia", media).await?;
    let busy = "return document.querySelector('[aria-busy=true]') !== null";
    let busy = || page.script::<bool>(busy);
    page.until("rest", busy, |busy| !busy).await?;
    let script = std::fs::read_to_string(tools::axe().expect("axe-core is installed")).expect("it can be read");
    page.run(script).await?;
    page.promise(RUN, vec![]).await
}

/// Sets the width of the viewport.
pub async fn set_width(page: &Page, width: u32) -> WebDriverResult<()> {
    let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    page.devtools("Emulation.setDeviceMetricsOverride", metrics).await?;
    Ok(())
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_a_diagnosis() {
    with_page("#/diagnose?model=gpt2&batch=4&seq=512", async |page| {
        page.enter("diagnose-text", "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)").await?;
        page.click("diagnose-go").await?;
        page.find("ladder").await?;
        page.click_at("[data-testid=checklists] summary").await?;
        page.find("check").await?;
        assert_eq!(findings(page).await?, Vec::<String>::new());
        let input = page.find("diagnose-files").await?;
        input.send_keys(concat!(env!("CARGO_MANIFEST_DIR"), "/data/snapshots/gpt2-bf16.pickle.gz")).await?;
        page.find("live").await?;
        for (width, theme) in [(1440, "light"), (390, "dark")] {
            // On a phone the menu of themes is behind a button.
            page.choose("theme", theme).await?;
            set_width(page, width).await?;
            assert_eq!(findings(page).await?, Vec::<String>::new(), "{width} {theme}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_any_language_theme_or_width() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        for width in [1440, 390] {
            set_width(page, width).await?;
            for theme in ["light", "dark"] {
                for lang in ["en", "zh-CN", "zh-TW"] {
                    page.go(&format!("#/?theme={theme}&lang={lang}&model=gpt2")).await?;
                    page.find("peak-allocated").await?;
                    assert_eq!(
                        findings(page).await?,
                        Vec::<String>::new(),
                        "{theme}, {lang}, {width} px"
                    );
                }
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_on_any_page_and_in_what_opens() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        for route in [
            "#/attention",
            "#/recommend?model=gpt2",
            "#/recorded",
            "#/recorded?recording=r3d-18",
            "#/course",
            "#/course?row=9.attn&theme=dark",
            "#/course?row=9.1&lang=zh-CN",
            "#/course?row=L.tree",
            "#/course?row=9.lists",
            "#/?model=qwen2.5-0.5b&phase=evaluate",
            "#/?model=nothing",
        ] {
            page.go(route).await?;
            assert_eq!(findings(page).await?, Vec::<String>::new(), "{route}");
        }
        page.go("#/?lengths=512,2048&freeze=qlora&ema=true").await?;
        page.click("peak-reserved").await?;
        page.find("derivation-result").await?;
        assert_eq!(findings(page).await?, Vec::<String>::new(), "a number explained");
        page.go("#/?model=gpt2&batch=4&theme=dark").await?;
        page.click("exactness").await?;
        page.find("exactness-told").await?;
        drop_bytes(page, ".plan", "lengths.csv", b"text,num_tokens\na,10\nb,30\n").await?;
        page.find("dataset-worst").await?;
        assert_eq!(findings(page).await?, Vec::<String>::new(), "exactness and a dataset");
        page.click("setups").await?;
        page.click("setup-save").await?;
        page.click("setup-rename").await?;
        page.find("setup-new-name").await?;
        assert_eq!(findings(page).await?, Vec::<String>::new(), "saved setups");
        Ok(())
    })
    .await;
}

/// WCAG 2.2, 1.4.10: a viewport of 1280 px at 400% zoom.
#[tokio::test]
async fn at_320_pixels_nothing_has_to_be_scrolled_sideways() {
    with_page("#/?model=qwen2-vl-2b", async |page| {
        set_width(page, 320).await?;
        for lang in ["en", "zh-CN"] {
            page.go(&format!("#/?model=qwen2-vl-2b&lang={lang}")).await?;
            page.find("peak-allocated").await?;
            let width = page.script::<f64>("return document.documentElement.scrollWidth");
            width.named(lang).until(|width| *width <= 320.0).await?;
        }
        Ok(())
    })
    .await;
}

/// WCAG 2.2, 2.5.8. A control hidden behind its label is clicked through the label.
#[tokio::test]
async fn everything_that_is_pressed_is_24_pixels_or_more() {
    with_page("#/?freeze=lora&ema=true&lengths=1000,2000", async |page| {
        page.find("peak-allocated").await?;
        let small = "return [...document.querySelectorAll('button, select, summary, textarea, .segment, .switch, [role=slider]')]
            .map(e => [e, e.getBoundingClientRect()])
            .filter(([e, box]) => box.width > 0 && (box.width < 23.9 || box.height < 23.9))
            .map(([e, box]) => `${e.className || e.tagName} ${e.textContent.trim()} ${box.width} x ${box.height}`)";
        page.script::<Vec<String>>(small).is(Vec::<String>::new()).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_verdict_is_announced_once_the_person_stops_typing() {
    with_page("#/?model=gpt2", async |page| {
        page.find("peak-allocated").await?;
        let watch = "window.said = [];
            new MutationObserver(() => window.said.push(document.querySelector('[data-testid=announcement]').textContent))
                .observe(document.querySelector('[data-testid=announcement]'),
                         { childList: true, characterData: true, subtree: true })";
        page.run(watch).await?;
        page.enter("batch", "512").await?;
        let said = || page.script::<Vec<String>>("return window.said");
        let said = page.until("announcements", said, |said| !said.is_empty()).await?;
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("H100 SXM"), "{said:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn who_wants_less_motion_sees_none() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let media = json!({"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]});
        page.devtools("Emulation.setEmulatedMedia", media).await?;
        page.find("peak-allocated").await?;
        let moving = "return [...document.querySelectorAll('*')].filter(e => {
            const style = getComputedStyle(e);
            return style.animationName !== 'none' || style.transitionDuration.split(',').some(t => parseFloat(t) > 0);
        }).map(e => e.className || e.tagName)";
        page.script::<Vec<String>>(moving).is(Vec::<String>::new()).await?;
        Ok(())
    })
    .await;
}
