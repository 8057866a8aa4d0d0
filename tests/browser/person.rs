//! A person at the page, whose presses of mouse and keys are counted.

use thirtyfour::Key;
use thirtyfour::error::WebDriverResult;

use crate::Page;

/// Presses of the mouse and of keys so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Presses of the mouse.
    pub clicks: usize,
    /// Presses of keys.
    pub keys: usize,
}

/// A person at the page.
pub struct Person<'a> {
    /// The page.
    pub page: &'a Page,
    /// Presses so far.
    pub effort: Effort,
}

impl<'a> Person<'a> {
    /// Someone who has not done anything yet.
    pub fn at(page: &'a Page) -> Self {
        Self {
            page,
            effort: Effort::default(),
        }
    }

    /// Returns the presses so far, and counts from none again.
    pub fn rest(&mut self) -> Effort {
        std::mem::take(&mut self.effort)
    }

    /// Presses what has a test id.
    pub async fn click(&mut self, testid: &str) -> WebDriverResult<()> {
        self.effort.clicks += 1;
        self.page.click(testid).await
    }

    /// Types into whatever has the focus; a text that is selected gives way.
    pub async fn types(&mut self, text: &str) -> WebDriverResult<()> {
        self.effort.keys += text.chars().count();
        self.page.driver.action_chain().send_keys(text).perform().await
    }

    /// Presses a key that writes nothing, this many times.
    pub async fn presses(&mut self, key: Key, times: usize) -> WebDriverResult<()> {
        for _ in 0..times {
            self.effort.keys += 1;
            self.page
                .driver
                .action_chain()
                .send_keys(key.clone() + "")
                .perform()
                .await?;
        }
        Ok(())
    }

    /// Presses Tab until what has a test id has the focus.
    ///
    /// # Panics
    /// If it never has.
    pub async fn tabs_to(&mut self, testid: &str) -> WebDriverResult<()> {
        let mut reached = Vec::new();
        for _ in 0..40 {
            self.presses(Key::Tab, 1).await?;
            let now = self.focused().await?;
            if now == testid {
                return Ok(());
            }
            reached.push(now);
        }
        panic!("Tab never reaches {testid}, but {reached:?}");
    }

    /// Test id of what has the focus.
    pub async fn focused(&self) -> WebDriverResult<String> {
        let script = "return document.activeElement.dataset.testid ?? document.activeElement.className";
        self.page.driver.execute(script, vec![]).await?.convert()
    }

    /// Presses a field and types in place of what it holds, which the press selects.
    pub async fn fills(&mut self, testid: &str, text: &str) -> WebDriverResult<()> {
        self.click(testid).await?;
        let selected = "const e = document.activeElement; return e.selectionEnd - e.selectionStart === e.value.length";
        let selected = || async { self.page.driver.execute(selected, vec![]).await?.convert::<bool>() };
        self.page.until("its text is selected", selected, |is| *is).await?;
        self.types(text).await
    }

    /// Searches a list and takes the first that is found.
    pub async fn picks(&mut self, testid: &str, text: &str) -> WebDriverResult<()> {
        self.fills(testid, text).await?;
        self.presses(Key::Enter, 1).await
    }

    /// Chooses from a menu: a press that opens it, and one on the choice.
    pub async fn chooses(&mut self, testid: &str, value: &str) -> WebDriverResult<()> {
        self.effort.clicks += 2;
        self.page.choose(testid, value).await
    }

    /// Waits for a verdict.
    pub async fn sees(&self, verdict: &str) -> WebDriverResult<()> {
        let read = || self.page.value("verdict");
        self.page
            .until("the verdict", read, |v| v.as_deref() == Some(verdict))
            .await?;
        Ok(())
    }
}
