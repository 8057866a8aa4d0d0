//! Tests embedded widgets.

use std::path::{Path, PathBuf};

use thirtyfour::error::WebDriverResult;
use thirtyfour::prelude::*;
use xtask::static_server::Server;

use crate::page::{Page, built, with_browser, with_page};

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
        page.driver.goto(&page.origin).await?;
        test(page).await
    })
    .await;
}

/// Height of a frame on the wiki page, in CSS pixels.
async fn height_of_frame(page: &Page, selector: &str) -> WebDriverResult<f64> {
    let script = "return document.querySelector(arguments[0])?.getBoundingClientRect().height ?? 0";
    page.driver.execute(script, vec![selector.into()]).await?.convert()
}

/// Runs `look` inside a frame and returns its result.
async fn in_frame<T>(
    page: &Page,
    selector: &str,
    look: impl AsyncFnOnce() -> WebDriverResult<T>,
) -> WebDriverResult<T> {
    let frame = page.driver.query(By::Css(selector)).first().await?;
    frame.enter_frame().await?;
    let seen = look().await?;
    page.driver.enter_default_frame().await?;
    Ok(seen)
}

#[tokio::test]
async fn a_widget_is_as_high_as_what_it_shows() {
    with_wiki("a-widget", async |page| {
        for (selector, testid) in [("#a iframe", "verdict"), ("#b iframe", "breakdown-row")] {
            let content = in_frame(page, selector, async || {
                page.until(testid, || page.value(testid), Option::is_some).await?;
                let around = "return document.querySelectorAll('.head, .foot, .controls').length";
                assert_eq!(page.driver.execute(around, vec![]).await?.convert::<usize>()?, 0);
                let height = "return document.body.getBoundingClientRect().height";
                page.driver.execute(height, vec![]).await?.convert::<f64>()
            })
            .await?;
            assert!(content > 50.0, "{content}");
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
        let run = |script: &'static str| page.driver.execute(script, vec![]);
        let before = in_frame(page, "#a iframe", async || {
            page.until("words", || page.text("verdict"), |t| t.contains("需要"))
                .await?;
            run("window.same = true").await?;
            page.value("verdict").await
        })
        .await?;
        assert_eq!(before.as_deref(), Some("fits"));
        run("document.getElementById('a').setAttribute('batch', '4096')").await?;
        in_frame(page, "#a iframe", async || {
            page.until("verdict", || page.value("verdict"), |v| v.as_deref() == Some("oom"))
                .await?;
            let same: bool = run("return window.same === true").await?.convert()?;
            assert!(same, "the frame was loaded anew");
            Ok(())
        })
        .await?;
        let theme = in_frame(page, "#b iframe", async || {
            page.until("breakdown", || page.value("breakdown-row"), Option::is_some)
                .await?;
            let script = "return [document.documentElement.lang, document.documentElement.dataset.theme]";
            run(script).await?.convert::<[String; 2]>()
        })
        .await?;
        assert_eq!(theme, ["en", "dark"]);
        in_frame(page, "#d iframe", async || {
            let heading = async || run("return location.hash").await?.convert::<String>();
            page.until("the page", heading, |hash| hash.starts_with("#/attention?"))
                .await?;
            page.until(
                "its content",
                || height_of_frame(page, "main"),
                |height| *height > 100.0,
            )
            .await
        })
        .await?;
        let titles = "return [...document.querySelectorAll('vramscope-widget iframe')].map((f) => f.title)";
        let titles: Vec<String> = run(titles).await?.convert()?;
        assert_eq!(titles, ["VRAMscope: gpt2", "Where it goes", "VRAMscope: gpt2"]);
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
        let forged = "window.postMessage({ type: 'vramscope:height', height: 3000, id: 'a' }, '*');\
                      document.querySelector('#c').contentWindow; return heard.length";
        let heard: usize = page.driver.execute(forged, vec![]).await?.convert()?;
        let arrived = || async {
            let count = page.driver.execute("return heard.length", vec![]).await?;
            count.convert::<usize>()
        };
        page.until("the forged message", arrived, |count| *count > heard)
            .await?;
        assert_eq!(a().await?, height);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_plain_frame_hears_its_height_with_its_id() {
    with_wiki("plain-frame", async |page| {
        let script =
            "return heard.filter((m) => m.type === 'vramscope:height' && m.id === 'mine').map((m) => m.height)";
        let heights = || async { page.driver.execute(script, vec![]).await?.convert::<Vec<f64>>() };
        // Shows the controls, but neither header nor footer.
        page.until("heights", heights, |all| all.iter().any(|h| *h > 500.0))
            .await?;
        in_frame(page, "#c", async || {
            let around = "return ['.head', '.foot', '.controls'].map((s) => document.querySelectorAll(s).length)";
            let around: [usize; 3] = page.driver.execute(around, vec![]).await?.convert()?;
            assert_eq!(around, [0, 0, 1]);
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
        page.driver.execute(stub, vec![]).await?;
        page.click("share").await?;
        page.click("copy-embed").await?;
        let copied: String = page.driver.execute("return window.copied", vec![]).await?.convert()?;
        let wanted = format!(
            "<script src=\"{}embed.js\" async></script>\n\
             <vramscope-widget model=\"gpt2\" gpu=\"H100 SXM\" batch=\"4\" freeze=\"lora\"></vramscope-widget>",
            page.origin
        );
        assert_eq!(copied, wanted);
        Ok(())
    })
    .await;
}
