//! A page open in a browser, user actions on it, and what it shows.
//!
//! A page shows what follows from an action some time later, and on a busy machine much later. So nothing that it shows
//! can be read here without an expectation: [`Shown`] reads again until it is met. The browser's driver, through which one
//! could read at once, is private.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use thirtyfour::common::print::PrintParameters;
use thirtyfour::error::WebDriverErrorInner;
use thirtyfour::extensions::query::ElementPollerWithTimeout;
use thirtyfour::prelude::*;
use xtask::{dist, static_server, tools};

use crate::chromedriver::Chromedriver;

/// Timeout, long enough for two cores that are also busy with other programs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two readings of what a page shows.
const PAUSE: Duration = Duration::from_millis(20);

/// The built page, open in a browser.
pub struct Page {
    /// WebDriver session.
    driver: WebDriver,
    /// Address of the page without a fragment.
    pub origin: String,
    _process: Chromedriver,
}

/// Opens the page at a fragment such as `#/?batch=4`, passes it to `test`, and closes the browser. The page must not
/// have stopped at a fault of its own by then, such as one in what it computes after the answer that a test waits for.
///
/// It is not kept for use offline, which `offline.rs` tests: each test would download and store the whole page beside what it
/// waits for.
pub async fn with_page(fragment: &str, test: impl AsyncFnOnce(&Page) -> WebDriverResult<()>) {
    let origin = format!("http://{}/", static_server::start(built(), 0).expect("a port is free"));
    with_browser(&origin, async |page| {
        page.keep_nothing().await?;
        page.go(fragment).await?;
        test(page).await?;
        page.no_fault().await
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
        self.before_load("Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined })")
            .await
    }

    /// Waits for an element with this test id, to act on it.
    pub async fn find(&self, testid: &str) -> WebDriverResult<Element> {
        self.find_at(&by_testid(testid)).await
    }

    /// Waits for the first element that matches a selector, to act on it.
    pub async fn find_at(&self, selector: &str) -> WebDriverResult<Element> {
        self.driver.query(By::Css(selector)).first().await.map(Element)
    }

    /// Scrolls to an element, as someone who reads on does: what is fetched when it is seen is fetched then.
    pub async fn see(&self, testid: &str) -> WebDriverResult<()> {
        self.find(testid).await?.0.scroll_into_view().await
    }

    /// Exact value of an element; `None` while there is no such element.
    pub fn value(&self, testid: &str) -> Shown<'_, Option<String>> {
        let script = "return document.querySelector(arguments[0])?.dataset.value ?? null";
        self.script_with(script, vec![by_testid(testid).into()]).named(testid)
    }

    /// Text of an element; empty while there is no such element.
    pub fn text(&self, testid: &str) -> Shown<'_, String> {
        self.text_at(&by_testid(testid)).named(testid)
    }

    /// Text of the first element that matches a selector; empty while there is none.
    pub fn text_at(&self, selector: &str) -> Shown<'_, String> {
        let script = "return document.querySelector(arguments[0])?.textContent ?? ''";
        self.script_with(script, vec![selector.into()]).named(selector)
    }

    /// Property of an element, such as the text that a field holds; `None` while there is no such element.
    pub fn prop(&self, testid: &str, name: &str) -> Shown<'_, Option<String>> {
        let script = "const value = document.querySelector(arguments[0])?.[arguments[1]]; return value == null ? null : `${value}`";
        self.script_with(script, vec![by_testid(testid).into(), name.into()])
            .named(testid)
    }

    /// Attribute of an element; `None` while there is no such element, or it has none of that name.
    pub fn attr(&self, testid: &str, name: &str) -> Shown<'_, Option<String>> {
        self.attr_at(&by_testid(testid), name).named(testid)
    }

    /// Attribute of the first element that matches a selector; `None` while there is no such element, or it has none of that
    /// name.
    pub fn attr_at(&self, selector: &str, name: &str) -> Shown<'_, Option<String>> {
        let script = "return document.querySelector(arguments[0])?.getAttribute(arguments[1]) ?? null";
        self.script_with(script, vec![selector.into(), name.into()])
            .named(selector)
    }

    /// What a script returns that only looks: it runs again and again.
    pub fn script<T: DeserializeOwned>(&self, script: impl AsRef<str>) -> Shown<'_, T> {
        self.script_with(script, Vec::new())
    }

    /// What a script with arguments returns that only looks: it runs again and again.
    pub fn script_with<T: DeserializeOwned>(&self, script: impl AsRef<str>, args: Vec<Value>) -> Shown<'_, T> {
        Shown {
            page: self,
            what: script.as_ref().to_owned(),
            script: script.as_ref().to_owned(),
            args,
            convert: Rc::new(|value| serde_json::from_value(value).map_err(|error| error.to_string())),
        }
    }

    /// Runs a script that acts, as soon as what it acts on is there.
    pub async fn run(&self, script: impl AsRef<str>) -> WebDriverResult<()> {
        self.run_with(script, Vec::new()).await
    }

    /// Runs a script with arguments that acts, as soon as what it acts on is there.
    pub async fn run_with(&self, script: impl AsRef<str>, args: Vec<Value>) -> WebDriverResult<()> {
        let begin = Instant::now();
        loop {
            match self.driver.execute(script.as_ref(), args.clone()).await {
                // What it acts on is not there yet.
                Err(error) if is_of_script(&error) && begin.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
                ran => return ran.map(drop),
            }
        }
    }

    /// Runs a script once that waits by itself, and calls its last argument with its answer.
    pub async fn promise<T: DeserializeOwned>(&self, script: &str, args: Vec<Value>) -> WebDriverResult<T> {
        self.driver.execute_async(script, args).await?.convert()
    }

    /// Sets how long a script of [`promise`](Self::promise) may take.
    pub async fn let_scripts_take(&self, time: Duration) -> WebDriverResult<()> {
        self.driver.set_script_timeout(time).await
    }

    /// Presses keys: a text is typed into whatever has the focus.
    pub async fn keys(&self, keys: impl Into<TypingData>) -> WebDriverResult<()> {
        self.driver.action_chain().send_keys(keys).perform().await
    }

    /// Presses a key while another one is held.
    pub async fn keys_with(&self, held: Key, key: impl Into<TypingData>) -> WebDriverResult<()> {
        let chain = self.driver.action_chain().key_down(held.clone());
        chain.send_keys(key).key_up(held).perform().await
    }

    /// Moves the pointer over an element, this many pixels to the right of its middle.
    pub async fn point_at(&self, element: &Element, right: i64) -> WebDriverResult<()> {
        let chain = self.driver.action_chain();
        chain.move_to_element_with_offset(&element.0, right, 0).perform().await
    }

    /// Runs a script in every document that is loaded from now on, before its own scripts.
    pub async fn before_load(&self, script: &str) -> WebDriverResult<()> {
        let cdp = self.driver.cdp();
        cdp.page().add_script_to_evaluate_on_new_document(script).await?;
        Ok(())
    }

    /// Sends a command of the DevTools protocol.
    pub async fn devtools(&self, method: &str, params: Value) -> WebDriverResult<()> {
        self.driver.cdp().send_raw(method, params).await.map(drop)
    }

    /// Goes back in the browser's history.
    pub async fn back(&self) -> WebDriverResult<()> {
        self.driver.back().await
    }

    /// Goes forward in the browser's history.
    pub async fn forward(&self) -> WebDriverResult<()> {
        self.driver.forward().await
    }

    /// Opens an address, and waits for nothing.
    pub async fn open_address(&self, address: &str) -> WebDriverResult<()> {
        self.driver.goto(address).await
    }

    /// Turns to the document in a frame.
    pub async fn enter_frame(&self, selector: &str) -> WebDriverResult<()> {
        let frame = self.driver.query(By::Css(selector)).first().await?;
        frame.enter_frame().await
    }

    /// Turns to the whole document again.
    pub async fn leave_frame(&self) -> WebDriverResult<()> {
        self.driver.enter_default_frame().await
    }

    /// Takes a picture of the window.
    pub async fn screenshot(&self, file: &Path) -> WebDriverResult<()> {
        self.driver.screenshot(file).await
    }

    /// Prints the page as a PDF.
    pub async fn print(&self) -> WebDriverResult<Vec<u8>> {
        self.driver.print_page(PrintParameters::default()).await
    }

    /// Holds that the page has not stopped at a fault of its own.
    pub async fn no_fault(&self) -> WebDriverResult<()> {
        let fault = self.driver.find_all(By::Css(by_testid("fault"))).await?;
        if let Some(fault) = fault.first() {
            panic!("the page stopped: {}", fault.text().await?);
        }
        Ok(())
    }

    /// Clicks an element by its test id.
    pub async fn click(&self, testid: &str) -> WebDriverResult<()> {
        self.click_at(&by_testid(testid)).await
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
            // What sticks to the top of the window may cover it, which a person scrolls away from.
            let centre = "arguments[0].scrollIntoView({ block: 'center' })";
            let _ = self.driver.execute(centre, vec![element.to_json()?]).await;
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

    /// Selects an option of a menu, once the menu has it.
    pub async fn choose(&self, testid: &str, value: &str) -> WebDriverResult<()> {
        let option = format!("{} option[value='{value}']", by_testid(testid));
        self.driver.query(By::Css(option)).first().await?.click().await
    }

    /// Waits until what `read` shows satisfies `wanted`; on timeout, panics with the last reading.
    pub async fn until<'a, T: std::fmt::Debug>(
        &'a self,
        what: &str,
        read: impl Fn() -> Shown<'a, T>,
        wanted: impl Fn(&T) -> bool,
    ) -> WebDriverResult<T> {
        read().named(what).until(wanted).await
    }

    /// Waits until the answer to `ask`, which is not the page's, satisfies `wanted`; on timeout, panics with the last one.
    pub async fn answered<T, F>(
        &self,
        what: &str,
        ask: impl Fn() -> F,
        wanted: impl Fn(&T) -> bool,
    ) -> WebDriverResult<T>
    where
        T: std::fmt::Debug,
        F: Future<Output = WebDriverResult<T>>,
    {
        let begin = Instant::now();
        loop {
            let last = ask().await?;
            if wanted(&last) {
                return Ok(last);
            }
            assert!(begin.elapsed() < PATIENCE, "{what}: still {last:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until an element's value differs from `before`, and returns it.
    pub async fn changed(&self, testid: &str, before: &str) -> WebDriverResult<String> {
        let now = self.value(testid);
        let now = now.until(|now| now.as_ref().is_some_and(|now| now != before)).await?;
        Ok(now.unwrap_or_default())
    }

    /// Fragment in the address bar, after forcing pending entries to be written as on leaving the page.
    pub fn fragment(&self) -> Shown<'_, String> {
        let script = "window.dispatchEvent(new Event('pagehide')); return location.hash";
        self.script(script).named("the address")
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

/// The longest part of a refusal between the settings that it names and what they are set to, which the page names as it
/// labels them.
pub fn between_settings(error: &str) -> &str {
    let plain = error.split('`').step_by(2).map(|part| {
        let value = [" is ", " to "].iter().find_map(|between| part.strip_prefix(between));
        value.map_or(part, |value| {
            &value[value.find([' ', ',', ';', ':']).unwrap_or(value.len())..]
        })
    });
    plain.max_by_key(|part| part.len()).unwrap_or(error)
}

/// Selector of a test id.
fn by_testid(testid: &str) -> String {
    format!("[data-testid='{testid}']")
}

/// An element to act on. What it shows is asked of the [`Page`].
pub struct Element(WebElement);

impl Element {
    /// Types into it, or chooses files.
    pub async fn send_keys(&self, keys: impl Into<TypingData>) -> WebDriverResult<()> {
        self.0.send_keys(keys).await
    }

    /// Gives it the focus.
    pub async fn focus(&self) -> WebDriverResult<()> {
        self.0.focus().await
    }

    /// Scrolls to it.
    pub async fn scroll_into_view(&self) -> WebDriverResult<()> {
        self.0.scroll_into_view().await
    }
}

/// Something that the page shows, which is read again until it is as expected.
#[must_use = "what a page shows is read when something is expected of it"]
pub struct Shown<'a, T> {
    page: &'a Page,
    /// Name in failures.
    what: String,
    script: String,
    args: Vec<Value>,
    convert: Rc<dyn Fn(Value) -> Result<T, String> + 'a>,
}

impl<'a, T> Shown<'a, T> {
    /// The same, with a name for failures.
    pub fn named(mut self, what: &str) -> Self {
        what.clone_into(&mut self.what);
        self
    }

    /// What follows from it.
    pub fn map<U>(self, f: impl Fn(T) -> U + 'a) -> Shown<'a, U>
    where
        T: 'a,
    {
        let convert = self.convert;
        Shown {
            page: self.page,
            what: self.what,
            script: self.script,
            args: self.args,
            convert: Rc::new(move |value| convert(value).map(&f)),
        }
    }

    /// Reads once; the error says why there is nothing to read yet.
    async fn read(&self) -> WebDriverResult<Result<T, String>> {
        match self.page.driver.execute(&self.script, self.args.clone()).await {
            Ok(value) => Ok((self.convert)(value.json().clone())),
            // What the script looks at is not there yet.
            Err(error) if is_of_script(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }
}

impl<T: std::fmt::Debug> Shown<'_, T> {
    /// Waits until it satisfies `wanted`, and returns it; on timeout, panics with the last reading.
    pub async fn until(self, wanted: impl Fn(&T) -> bool) -> WebDriverResult<T> {
        let begin = Instant::now();
        loop {
            let last = self.read().await?;
            let told = format!("{last:?}");
            if let Some(wanted) = last.ok().filter(&wanted) {
                return Ok(wanted);
            }
            assert!(begin.elapsed() < PATIENCE, "{}: still {told}", self.what);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until it equals what is expected.
    pub async fn is<U: std::fmt::Debug>(self, expected: U) -> WebDriverResult<T>
    where
        T: PartialEq<U>,
    {
        let what = format!("{}, to be {expected:?}", self.what);
        self.named(&what).until(|now| *now == expected).await
    }
}

impl<T: std::fmt::Debug> Shown<'_, Option<T>> {
    /// Waits until it is there, and returns it.
    pub async fn present(self) -> WebDriverResult<T> {
        let found = self.until(Option::is_some).await?;
        Ok(found.expect("it is some"))
    }

    /// Waits until it is not there.
    pub async fn absent(self) -> WebDriverResult<()> {
        self.until(Option::is_none).await.map(drop)
    }
}

impl Shown<'_, Option<String>> {
    /// Waits until it is there and equals a text.
    pub async fn holds(self, text: &str) -> WebDriverResult<()> {
        let what = format!("{}, to be {text:?}", self.what);
        let wanted = |now: &Option<String>| now.as_deref() == Some(text);
        self.named(&what).until(wanted).await.map(drop)
    }
}

impl Shown<'_, String> {
    /// Waits until it contains a text, and returns it.
    pub async fn contains(self, part: &str) -> WebDriverResult<String> {
        let what = format!("{}, to contain {part:?}", self.what);
        self.named(&what).until(|now| now.contains(part)).await
    }

    /// Waits until it contains no such text.
    pub async fn lacks(self, part: &str) -> WebDriverResult<()> {
        let what = format!("{}, to lack {part:?}", self.what);
        self.named(&what).until(|now| !now.contains(part)).await.map(drop)
    }

    /// Waits until it is not empty, and returns it.
    pub async fn nonempty(self) -> WebDriverResult<String> {
        self.until(|now| !now.is_empty()).await
    }
}

/// Returns true if a script failed, as one does that looks for something which is not there.
fn is_of_script(error: &WebDriverError) -> bool {
    matches!(**error, WebDriverErrorInner::JavascriptError(_))
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
