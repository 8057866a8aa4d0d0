//! Tests the page offline, its updates, and its installation as an app.

use std::path::{Path, PathBuf};

use thirtyfour::error::WebDriverResult;
use xtask::commands::Build;
use xtask::page::complete;
use xtask::static_server::Server;

use crate::page::{Page, Shown, built, copy, with_browser, with_page};

/// Waits until the service worker has cached everything and controls this page.
async fn kept(page: &Page) -> WebDriverResult<bool> {
    let script = "return Boolean(navigator.serviceWorker.controller)";
    page.until("the page is kept", || answer(page, script), |kept| *kept)
        .await
}

fn answer<'a, T: serde::de::DeserializeOwned>(page: &'a Page, script: &str) -> Shown<'a, T> {
    page.script(script)
}

async fn evaluated<T: serde::de::DeserializeOwned>(page: &Page, script: &str) -> WebDriverResult<T> {
    let script = format!("const done = arguments[0]; ({script}).then(done, (e) => done(String(e)))");
    page.promise(&script, vec![]).await
}

#[tokio::test]
async fn after_one_visit_the_page_works_without_its_host() {
    let server = Server::start(built(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.go("#/?model=gpt2").await?;
        let before = page.value("peak-allocated").present().await?;
        kept(page).await?;
        server.stop();

        page.go("#/?model=gpt2").await?;
        page.value("peak-allocated").holds(&before).await?;
        page.enter("batch", "4").await?;
        page.changed("peak-allocated", &before).await?;
        page.go("?embed=1#/?model=gpt2&widget=phases").await?;
        page.value("phase-row").present().await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());

        let gone: String = evaluated(page, "fetch('not-kept').then(() => 'answered', () => 'gone')").await?;
        assert_eq!(gone, "gone", "the host still answers, so nothing was shown");
        Ok(())
    })
    .await;
}

/// Copies the built page so that a test can change it.
pub fn copy_of_page(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Remove the copy of an earlier run, if there is one.
    std::fs::remove_dir_all(&folder).ok();
    copy(&built(), &folder).expect("the built page can be copied");
    folder
}

/// Changes the page as a release would.
fn release(folder: &Path) {
    let page = folder.join("index.html");
    let html = std::fs::read_to_string(&page).expect("the page is there");
    let newer = html.replacen("<title>", "<meta name=\"release\" content=\"newer\"><title>", 1);
    assert_ne!(html, newer);
    std::fs::write(page, newer).expect("the page can be changed");
    complete(folder, Build::Quick).expect("the changed page is whole");
}

#[tokio::test]
async fn a_newer_version_is_announced_and_taken_when_asked() {
    let folder = copy_of_page("a-newer-version");
    let server = Server::start(folder.clone(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        let is_newer = "return Boolean(document.querySelector('meta[name=release]'))";
        page.go("#/?model=gpt2&batch=3").await?;
        kept(page).await?;
        release(&folder);

        page.go("#/?model=gpt2&batch=3").await?;
        page.text("update").contains("new version").await?;
        // Nothing changes before it is asked.
        answer::<bool>(page, is_newer).is(false).await?;
        page.enter("batch", "5").await?;
        page.until("the address", || page.fragment(), |now| now.contains("batch=5"))
            .await?;
        page.click("update-now").await?;
        page.until("the newer page", || answer::<bool>(page, is_newer), |newer| *newer)
            .await?;
        page.prop("batch", "value").holds("5").await?;

        let caches = || evaluated::<usize>(page, "caches.keys().then((names) => names.length)");
        page.answered("older caches are gone", caches, |count| *count == 1)
            .await?;
        page.text("update").is("").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_page_can_be_installed() {
    let server = Server::start(built(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.go("").await?;
        let script = "(async () => {
            const link = document.querySelector('link[rel=manifest]').href;
            const manifest = await (await fetch(link)).json();
            const measured = await Promise.all(manifest.icons.filter((i) => i.type === 'image/png').map(async (icon) => {
                const image = await createImageBitmap(await (await fetch(new URL(icon.src, link))).blob());
                return [icon.sizes, `${image.width}x${image.height}`, icon.purpose ?? 'any'];
            }));
            return { display: manifest.display, start: new URL(manifest.start_url, link).href, measured };
        })()";
        let manifest: serde_json::Value = evaluated(page, script).await?;
        assert_eq!(manifest["display"], "standalone");
        assert_eq!(manifest["start"], page.origin);
        let icons: Vec<[String; 3]> = serde_json::from_value(manifest["measured"].clone()).expect("a list of icons");
        for [said, is, _] in &icons {
            assert_eq!(said, is);
        }
        let purposes: Vec<_> = icons.iter().map(|[size, _, purpose]| format!("{size} {purpose}")).collect();
        assert_eq!(purposes, ["192x192 any", "512x512 any", "512x512 maskable"]);
        Ok(())
    })
    .await;
}

/// Chromium offers installation unpredictably, so its own events are suppressed and the test dispatches one.
#[tokio::test]
async fn an_offer_to_install_is_taken_up_by_a_press_once() {
    with_page("", async |page| {
        let hold =
            "addEventListener('beforeinstallprompt', e => { if (e.isTrusted) e.stopImmediatePropagation() }, true)";
        page.before_load(hold).await?;
        page.go("#/?model=gpt2").await?;
        page.find("peak-allocated").await?;
        let shown = || answer::<u32>(page, "return document.querySelectorAll('[data-testid=install]').length");
        // Nothing is offered yet.
        shown().is(0_u32).await?;
        let offer = "const offer = new Event('beforeinstallprompt', { cancelable: true });
            window.prompts = 0;
            offer.prompt = () => { window.prompts += 1; return Promise.resolve({ outcome: 'dismissed' }) };
            window.dispatchEvent(offer);
            window.held = offer.defaultPrevented";
        for number in 1..=2 {
            page.run(offer).await?;
            // The browser's own banner is held back.
            answer::<bool>(page, "return window.held").is(true).await?;
            page.until("the button", shown, |n| *n == 1).await?;
            page.click("share").await?;
            page.click("install").await?;
            page.until("the button is gone", shown, |n| *n == 0).await?;
            let prompts = answer::<u32>(page, "return window.prompts");
            prompts.named(&format!("prompts of offer {number}")).is(1_u32).await?;
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}
