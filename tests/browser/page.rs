//! A page open in a browser, and what a person does with it.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thirtyfour::error::WebDriverErrorInner;
use thirtyfour::extensions::query::ElementPollerWithTimeout;
use thirtyfour::prelude::*;
use xtask::{dist, static_server, tools};

use crate::chromedriver::Chromedriver;

/// Long enough for two cores that are busy with other programs too.
const PATIENCE: Duration = Duration::from_secs(60);

/// The built page, open.
pub struct Page {
    /// The browser's session.
    pub driver: WebDriver,
    /// Where the page is served, without a fragment.
    pub origin: String,
    _process: Chromedriver,
}

/// Opens the page at a fragment such as `#/?batch=4`, hands it to `test`, and closes the browser.
pub async fn with_page(fragment: &str, test: impl AsyncFnOnce(&Page) -> WebDriverResult<()>) {
    let origin = format!("http://{}/", static_server::start(built(), 0).expect("a port is free"));
    with_browser(&origin, async |page| {
        page.go(fragment).await?;
        test(page).await
    })
    .await;
}

/// Opens a browser for what is at `origin`, hands it to `test`, and closes it.
pub async fn with_browser(origin: &str, test: impl AsyncFnOnce(&Page) -> WebDriverResult<()>) {
    let page = Page::open(origin.to_owned()).await.expect("the browser opens");
    test(&page).await.expect("the browser does as it is asked");
}

/// The folder of the built page.
pub fn built() -> PathBuf {
    assert!(
        dist().join("index.html").is_file(),
        "no built page in dist/: run `cargo xtask test`"
    );
    dist()
}

impl Page {
    async fn open(origin: String) -> WebDriverResult<Self> {
        let browser = tools::browser().expect("a browser is installed");
        let process = Chromedriver::start(&browser);
        let mut capabilities = DesiredCapabilities::chrome();
        capabilities.set_binary(&browser.chromium.to_string_lossy())?;
        for arg in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--lang=en",
            // A request to any other host fails, and its failure is an error in the console.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
        ] {
            capabilities.add_arg(arg)?;
        }
        capabilities.add_arg("--window-size=1440,1400")?;
        let poller = ElementPollerWithTimeout::new(PATIENCE, Duration::from_millis(100));
        let driver = WebDriver::builder(process.url(), capabilities)
            .poller(Arc::new(poller))
            .connect()
            .await?;
        driver.set_script_timeout(PATIENCE).await?;
        // The driver's end closes the browser, also where a test fails.
        driver.clone().leak().expect("the session is open");
        Ok(Self {
            driver,
            origin,
            _process: process,
        })
    }

    /// Loads the page anew at a fragment, and waits until it has drawn something.
    pub async fn go(&self, fragment: &str) -> WebDriverResult<()> {
        self.driver.goto("about:blank").await?;
        self.driver.goto(format!("{}{fragment}", self.origin)).await?;
        self.driver
            .query(By::Css("#results > *, #fault, .boot-error"))
            .first()
            .await?;
        Ok(())
    }

    /// From the next page on, nothing is kept for use offline, which the page does by itself after a while.
    pub async fn keep_nothing(&self) -> WebDriverResult<()> {
        let source = "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined })";
        let cdp = self.driver.cdp();
        cdp.page().add_script_to_evaluate_on_new_document(source).await?;
        Ok(())
    }

    /// The element of a test id.
    pub async fn find(&self, testid: &str) -> WebDriverResult<WebElement> {
        self.driver
            .query(By::Css(format!("[data-testid='{testid}']")))
            .first()
            .await
    }

    /// The exact value that an element carries; `None` while there is no such element.
    pub async fn value(&self, testid: &str) -> WebDriverResult<Option<String>> {
        let script = "return document.querySelector(arguments[0])?.dataset.value ?? null";
        let selector = format!("[data-testid='{testid}']").into();
        self.driver.execute(script, vec![selector]).await?.convert()
    }

    /// The shown text of an element; empty while there is no such element.
    pub async fn text(&self, testid: &str) -> WebDriverResult<String> {
        let script = "return document.querySelector(arguments[0])?.textContent ?? ''";
        let selector = format!("[data-testid='{testid}']").into();
        self.driver.execute(script, vec![selector]).await?.convert()
    }

    /// Clicks the element of a test id.
    pub async fn click(&self, testid: &str) -> WebDriverResult<()> {
        self.click_at(&format!("[data-testid='{testid}']")).await
    }

    /// Clicks the first element of a selector. What comes into sight above it may move it between the
    /// pointer's aim and its press, so that the press hits something else: then again.
    pub async fn click_at(&self, selector: &str) -> WebDriverResult<()> {
        let begin = Instant::now();
        loop {
            let element = self.driver.query(By::Css(selector)).first().await?;
            match self.press(&element).await {
                Ok(true) => return Ok(()),
                // Drawn anew since it was found, covered while things moved, or not in sight yet.
                Err(error) if !is_moved(&error) => return Err(error),
                Ok(false) | Err(_) => assert!(begin.elapsed() < PATIENCE, "{selector}: every click missed it"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Aims at an element and presses; whether the press hit it.
    async fn press(&self, element: &WebElement) -> WebDriverResult<bool> {
        // A press that loads another page leaves no mark at all.
        let watch = "window.hit = false;
            const target = arguments[0];
            const of_label = e => e.closest?.('label')?.contains(target);
            addEventListener('click', e => { window.hit = target.contains(e.target) || !!of_label(e.target) },
                { capture: true, once: true })";
        self.driver.execute(watch, vec![element.to_json()?]).await?;
        element.click().await?;
        self.driver
            .execute("return window.hit ?? true", vec![])
            .await?
            .convert()
    }

    /// Types a text in the place of what a field holds.
    pub async fn enter(&self, testid: &str, text: &str) -> WebDriverResult<()> {
        self.click(testid).await?;
        let field = self.find(testid).await?;
        field.send_keys(Key::Control + "a").await?;
        field.send_keys(text).await
    }

    /// Picks a choice of a menu.
    pub async fn choose(&self, testid: &str, value: &str) -> WebDriverResult<()> {
        let menu = self.find(testid).await?;
        menu.find(By::Css(format!("option[value='{value}']")))
            .await?
            .click()
            .await
    }

    /// Waits until what `read` gives is as wanted; the last reading is shown where it never is.
    pub async fn until<T, F>(&self, what: &str, read: impl Fn() -> F, wanted: impl Fn(&T) -> bool) -> WebDriverResult<T>
    where
        T: std::fmt::Debug,
        F: Future<Output = WebDriverResult<T>>,
    {
        let begin = Instant::now();
        loop {
            let last = read().await?;
            if wanted(&last) {
                return Ok(last);
            }
            assert!(begin.elapsed() < PATIENCE, "{what}: still {last:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until an element's value differs from `before`.
    pub async fn changed(&self, testid: &str, before: &Option<String>) -> WebDriverResult<Option<String>> {
        self.until(testid, || self.value(testid), |now| now != before && now.is_some())
            .await
    }

    /// The fragment of the address bar, as it is when the page is left now.
    pub async fn fragment(&self) -> WebDriverResult<String> {
        let script = "window.dispatchEvent(new Event('pagehide')); return location.hash";
        self.driver.execute(script, vec![]).await?.convert()
    }

    /// What the browser logged as an error, breaches of the page's policy among them.
    pub async fn errors(&self) -> WebDriverResult<Vec<String>> {
        let log = self.driver.browser_log().await?;
        Ok(log
            .iter()
            .map(|entry| format!("{entry:?}"))
            .filter(|e| e.to_uppercase().contains("SEVERE"))
            .collect())
    }
}

/// Whether a click failed since its element is not there any more, lies below another or comes into sight later,
/// as what tells of long work does.
fn is_moved(error: &WebDriverError) -> bool {
    matches!(
        **error,
        WebDriverErrorInner::StaleElementReference(_)
            | WebDriverErrorInner::ElementClickIntercepted(_)
            | WebDriverErrorInner::ElementNotInteractable(_)
    )
}
