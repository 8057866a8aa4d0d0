//! Tests embedded widgets.

use std::path::{Path, PathBuf};

use thirtyfour::error::WebDriverResult;
use xtask::static_server::Server;

use crate::page::{Page, Shown, built, with_browser, with_page};

/// Writes a wiki page in Traditional Chinese with widgets; it is served from another origin.
fn wiki(name: &str, vramscope: &str) -> PathBuf {
    let html = format!(
        r#"<!doctype html><html lang="zh-Hant-TW"><meta charset="utf-8"><title>Wiki</title>
        <script>heard = []; addEventListener("message", (e) => heard.push(e.data))</script>
        <script src="{vramscope}embed.js" async></script>
        <vramscope-widget id="a" model="gpt2" gpu="RTX 4090" batch="2" widget="verdict"></vramscope-widget>
        <vramscope-widget id="b" model="gpt2" widget="breakdown" lang="en" theme="dark" title="Where it goes"></vramscope-widget>
        <vramscope-widget id="d" model="gpt2" widget="attention" lang="en"></vramscope-widget>
        <iframe id="c" src="{vramscope}?embed=1&id=mine#/?model=gpt2"></iframe>"#
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    std::fs::write(folder.join("index.html"), html).expect("the page can be written");
    folder
}

/// Opens the wiki page and waits until its frames have reported their heights.
async fn with_wiki(name: &str, test: impl AsyncFnOnce(&Page) -> WebDriverResult<()>) {
    let vramscope = Server::start(built(), 0).expect("a port is free");
    let wiki = Server::start(wiki(name, &vramscope.origin()), 0).expect("a port is free");
    with_browser(&wiki.origin(), async |page| {
        page.open_address(&page.origin).await?;
        test(page).await
    })
    .await;
}

/// Height of a frame on the wiki page, in CSS pixels.
fn height_of_frame<'a>(page: &'a Page, selector: &str) -> Shown<'a, f64> {
    let script = "return document.querySelector(arguments[0])?.getBoundingClientRect().height ?? 0";
    page.script_with(script, vec![selector.into()])
}

/// Runs `look` inside a frame and returns its result.
async fn in_frame<T>(
    page: &Page,
    selector: &str,
    look: impl AsyncFnOnce() -> WebDriverResult<T>,
) -> WebDriverResult<T> {
    page.enter_frame(selector).await?;
    let seen = look().await?;
    page.leave_frame().await?;
    Ok(seen)
}

#[tokio::test]
async fn a_widget_is_as_high_as_what_it_shows() {
    with_wiki("a-widget", async |page| {
        for (selector, testid) in [("#a iframe", "verdict"), ("#b iframe", "breakdown-row")] {
            let content = in_frame(page, selector, async || {
                page.value(testid).present().await?;
                let around = "return document.querySelectorAll('.head, .foot, .controls').length";
                page.script::<usize>(around).is(0).await?;
                let height = "return document.body.getBoundingClientRect().height";
                page.script::<f64>(height).until(|height| *height > 50.0).await
            })
            .await?;
            let fits = |height: &f64| (height - content).abs() <= 1.0;
            page.until(selector, || height_of_frame(page, selector), fits).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_widget_follows_its_attributes_and_the_language_around_it() {
    with_wiki("attributes", async |page| {
        in_frame(page, "#a iframe", async || {
            page.text("verdict").contains("需要").await?;
            page.run("window.same = true").await?;
            page.value("verdict").holds("fits").await
        })
        .await?;
        page.run("document.getElementById('a').setAttribute('batch', '4096')")
            .await?;
        in_frame(page, "#a iframe", async || {
            page.until("verdict", || page.value("verdict"), |v| v.as_deref() == Some("oom"))
                .await?;
            // The frame was not loaded anew.
            page.script::<bool>("return window.same === true").is(true).await?;
            Ok(())
        })
        .await?;
        in_frame(page, "#b iframe", async || {
            page.value("breakdown-row").present().await?;
            let script = "return [document.documentElement.lang, document.documentElement.dataset.theme]";
            page.script::<[String; 2]>(script).is(["en", "dark"]).await
        })
        .await?;
        in_frame(page, "#d iframe", async || {
            let hash = page.script::<String>("return location.hash");
            hash.until(|hash| hash.starts_with("#/attention?")).await?;
            page.until(
                "its content",
                || height_of_frame(page, "main"),
                |height| *height > 100.0,
            )
            .await
        })
        .await?;
        let titles = "return [...document.querySelectorAll('vramscope-widget iframe')].map((f) => f.title)";
        let wanted = ["VRAMscope: gpt2", "Where it goes", "VRAMscope: gpt2"];
        page.script::<Vec<String>>(titles).is(wanted).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn only_its_own_frame_sets_a_widgets_height() {
    with_wiki("own-frame", async |page| {
        in_frame(page, "#a iframe", async || {
            page.until("verdict", || page.value("verdict"), Option::is_some).await
        })
        .await?;
        let a = || height_of_frame(page, "#a iframe");
        let height = page.until("height", a, |h| (*h - 192.0).abs() > 1.0).await?;
        let forge = "window.postMessage({ type: 'vramscope:height', height: 3000, id: 'a' }, '*')";
        page.run(forge).await?;
        let arrived = "return heard.some((message) => message.height === 3000)";
        page.script::<bool>(arrived)
            .named("the forged message")
            .is(true)
            .await?;
        a().is(height).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_plain_frame_hears_its_height_with_its_id() {
    with_wiki("plain-frame", async |page| {
        let script =
            "return heard.filter((m) => m.type === 'vramscope:height' && m.id === 'mine').map((m) => m.height)";
        let heights = || page.script::<Vec<f64>>(script);
        // Shows the controls, but neither header nor footer.
        page.until("heights", heights, |all| all.iter().any(|h| *h > 500.0))
            .await?;
        in_frame(page, "#c", async || {
            let around = "return ['.head', '.foot', '.controls'].map((s) => document.querySelectorAll(s).length)";
            page.script::<[usize; 3]>(around).is([0, 0, 1]).await?;
            Ok(())
        })
        .await
    })
    .await;
}

#[tokio::test]
async fn the_embed_code_shows_what_is_entered() {
    with_page("#/?model=gpt2&batch=4&freeze=lora", async |page| {
        let stub = "navigator.clipboard.writeText = async (text) => { window.copied = text }";
        page.run(stub).await?;
        page.click("share").await?;
        page.click("copy-embed").await?;
        let code = page.script::<Option<String>>("return window.copied").present().await?;
        let script = format!(
            "<script src=\"{}embed.js\" async></script>\n<vramscope-widget ",
            page.origin
        );
        assert!(
            code.starts_with(&script) && code.ends_with("></vramscope-widget>"),
            "{code}"
        );
        // Also what is as it is by default: a later default must not change the widget.
        for attribute in [
            "model=\"gpt2\"",
            "gpu=\"H100 SXM\"",
            "batch=\"4\"",
            "freeze=\"lora\"",
            "ckpt=\"none\"",
            "widget=\"verdict\"",
        ] {
            assert!(code.contains(attribute), "{attribute}: {code}");
        }
        Ok(())
    })
    .await;
}
