//! A page open in a browser, and user actions on it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thirtyfour::error::WebDriverErrorInner;
use thirtyfour::extensions::query::ElementPollerWithTimeout;
use thirtyfour::prelude::*;
use xtask::{dist, static_server, tools};

use crate::chromedriver::Chromedriver;

/// Timeout, long enough for two cores that are also busy with other programs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The built page, open in a browser.
pub struct Page {
    /// WebDriver session.
    pub driver: WebDriver,
    /// Address of the page without a fragment.
    pub origin: String,
    _process: Chromedriver,
}

/// Opens the page at a fragment such as `#/?batch=4`, passes it to `test`, and closes the browser. The page must not
/// have stopped at a fault of its own by then, such as one in what it computes after the answer that a test waits for.
pub async fn with_page(fragment: &str, test: impl AsyncFnOnce(&Page) -> WebDriverResult<()>) {
    let origin = format!("http://{}/", static_server::start(built(), 0).expect("a port is free"));
    with_browser(&origin, async |page| {
        page.go(fragment).await?;
        test(page).await?;
        assert_eq!(page.text("fault").await?, "", "no fault is left");
        Ok(())
    })
    .await;
}

/// Opens a browser at `origin`, passes it to `test`, and closes it.
pub async fn with_browser(origin: &str, test: impl AsyncFnOnce(&Page) -> WebDriverResult<()>) {
    let page = Page::open(origin.to_owned()).await.expect("the browser opens");
    test(&page).await.expect("the browser does as it is asked");
}

/// Returns the folder of the built page.
pub fn built() -> PathBuf {
    assert!(
        dist().join("index.html").is_file(),
        "no built page in dist/: run `cargo xtask test`"
    );
    dist()
}

/// Copies a folder with all that it holds.
///
/// # Errors
/// If a file cannot be read or written.
pub fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
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
            // Requests to any other host fail and log an error to the console.
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
        // The session is closed when the driver process ends, even if a test fails.
        driver.clone().leak().expect("the session is open");
        Ok(Self {
            driver,
            origin,
            _process: process,
        })
    }

    /// Reloads the page at a fragment and waits until it has rendered something.
    pub async fn go(&self, fragment: &str) -> WebDriverResult<()> {
        self.driver.goto("about:blank").await?;
        self.driver.goto(format!("{}{fragment}", self.origin)).await?;
        self.driver
            .query(By::Css("#results > *, #fault, .boot-error"))
            .first()
            .await?;
        Ok(())
    }

    /// Disables the service worker from the next load on, which would otherwise download the whole page after a while.
    pub async fn keep_nothing(&self) -> WebDriverResult<()> {
        let source = "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined })";
        let cdp = self.driver.cdp();
        cdp.page().add_script_to_evaluate_on_new_document(source).await?;
        Ok(())
    }

    /// Finds an element by its test id.
    pub async fn find(&self, testid: &str) -> WebDriverResult<WebElement> {
        self.driver
            .query(By::Css(format!("[data-testid='{testid}']")))
            .first()
            .await
    }

    /// Scrolls to an element, as someone who reads on does: what is fetched when it is seen is fetched then.
    pub async fn see(&self, testid: &str) -> WebDriverResult<()> {
        self.find(testid).await?.scroll_into_view().await
    }

    /// Exact value of an element; `None` if there is no such element.
    pub async fn value(&self, testid: &str) -> WebDriverResult<Option<String>> {
        let script = "return document.querySelector(arguments[0])?.dataset.value ?? null";
        let selector = format!("[data-testid='{testid}']").into();
        self.driver.execute(script, vec![selector]).await?.convert()
    }

    /// Text of an element; empty if there is no such element.
    pub async fn text(&self, testid: &str) -> WebDriverResult<String> {
        let script = "return document.querySelector(arguments[0])?.textContent ?? ''";
        let selector = format!("[data-testid='{testid}']").into();
        self.driver.execute(script, vec![selector]).await?.convert()
    }

    /// Clicks an element by its test id.
    pub async fn click(&self, testid: &str) -> WebDriverResult<()> {
        self.click_at(&format!("[data-testid='{testid}']")).await
    }

    /// Clicks the first element that matches a selector. Content that appears above may move it between aiming and
    /// clicking, so that the click hits something else; in that case, tries again.
    pub async fn click_at(&self, selector: &str) -> WebDriverResult<()> {
        let begin = Instant::now();
        loop {
            let element = self.driver.query(By::Css(selector)).first().await?;
            match self.press(&element).await {
                Ok(true) => return Ok(()),
                // Re-rendered since it was found, covered while things moved, or not visible yet.
                Err(error) if !is_moved(&error) => return Err(error),
                Ok(false) | Err(_) => assert!(begin.elapsed() < PATIENCE, "{selector}: every click missed it"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Clicks an element and returns true if the click hit it.
    async fn press(&self, element: &WebElement) -> WebDriverResult<bool> {
        // A click that loads another page leaves no flag behind.
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

    /// Replaces the text of a field.
    pub async fn enter(&self, testid: &str, text: &str) -> WebDriverResult<()> {
        self.click(testid).await?;
        let field = self.find(testid).await?;
        field.send_keys(Key::Control + "a").await?;
        field.send_keys(text).await
    }

    /// Selects an option of a menu.
    pub async fn choose(&self, testid: &str, value: &str) -> WebDriverResult<()> {
        let menu = self.find(testid).await?;
        menu.find(By::Css(format!("option[value='{value}']")))
            .await?
            .click()
            .await
    }

    /// Waits until the result of `read` satisfies `wanted`; on timeout, panics with the last result.
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

    /// Fragment in the address bar, after forcing pending entries to be written as on leaving the page.
    pub async fn fragment(&self) -> WebDriverResult<String> {
        let script = "window.dispatchEvent(new Event('pagehide')); return location.hash";
        self.driver.execute(script, vec![]).await?.convert()
    }

    /// Errors in the browser's log, including violations of the page's content security policy.
    pub async fn errors(&self) -> WebDriverResult<Vec<String>> {
        let log = self.driver.browser_log().await?;
        Ok(log
            .iter()
            .map(|entry| format!("{entry:?}"))
            .filter(|e| e.to_uppercase().contains("SEVERE"))
            .collect())
    }
}

/// Returns true if a click failed because the element is gone, covered or not visible yet, as happens with progress
/// indicators.
fn is_moved(error: &WebDriverError) -> bool {
    matches!(
        **error,
        WebDriverErrorInner::StaleElementReference(_)
            | WebDriverErrorInner::ElementClickIntercepted(_)
            | WebDriverErrorInner::ElementNotInteractable(_)
    )
}
