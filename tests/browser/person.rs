//! A person at the page, whose presses of mouse and keys are counted.

use thirtyfour::Key;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::{Shown, with_page};

/// Presses of the mouse and of keys so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Presses of the mouse.
    pub clicks: usize,
    /// Presses of keys.
    pub keys: usize,
}

/// What a person works the page with.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Hands {
    /// The mouse, and the keyboard to type.
    #[default]
    Mouse,
    /// The keyboard alone: Tab up to a control, then the key that it answers.
    Keyboard,
}

/// A person at the page.
pub struct Person<'a> {
    /// The page.
    pub page: &'a Page,
    /// What the person works it with.
    hands: Hands,
    /// Presses so far.
    pub effort: Effort,
}

/// Walks a task twice: with the mouse, whose presses are counted, and with the keyboard alone.
pub async fn walk(url: &str, task: impl AsyncFn(&Page, &mut Person<'_>) -> WebDriverResult<()>) {
    for hands in [Hands::Mouse, Hands::Keyboard] {
        with_page(url, async |page| {
            page.value("verdict").present().await?;
            task(page, &mut Person::with(page, hands)).await
        })
        .await;
    }
}

impl<'a> Person<'a> {
    /// Someone who has not done anything yet.
    pub fn at(page: &'a Page) -> Self {
        Self::with(page, Hands::Mouse)
    }

    /// The same, with these hands.
    pub fn with(page: &'a Page, hands: Hands) -> Self {
        Self {
            page,
            hands,
            effort: Effort::default(),
        }
    }

    /// Holds that no more presses were needed so far, and counts from none again. Fewer are welcome. How often Tab is
    /// pressed is not held, only that it leads there.
    ///
    /// # Panics
    /// If there were more.
    #[track_caller]
    pub fn took_at_most(&mut self, clicks: usize, keys: usize) {
        let effort = std::mem::take(&mut self.effort);
        if self.hands == Hands::Keyboard {
            return assert_eq!(effort.clicks, 0, "with the keyboard alone");
        }
        let is_little = effort.clicks <= clicks && effort.keys <= keys;
        assert!(is_little, "{effort:?}, and {clicks} clicks and {keys} keys are enough");
    }

    /// Presses what has a test id.
    pub async fn click(&mut self, testid: &str) -> WebDriverResult<()> {
        if self.hands == Hands::Mouse {
            self.effort.clicks += 1;
            return self.page.click(testid).await;
        }
        self.page.find(testid).await?;
        self.tabs_to(testid).await?;
        let key = "const e = document.activeElement; const is = (what) => e.matches(what);
            return is('input[type=checkbox], input[type=radio]') ? 'space' : is('input, select, textarea') ? 'none' : 'enter'";
        match &*self.page.script::<String>(key).nonempty().await? {
            "space" => self.types(" ").await,
            "enter" => self.presses(Key::Enter, 1).await,
            // A field that has the focus is ready.
            _ => Ok(()),
        }
    }

    /// Types into whatever has the focus; a text that is selected gives way.
    pub async fn types(&mut self, text: &str) -> WebDriverResult<()> {
        self.effort.keys += text.chars().count();
        self.page.keys(text).await
    }

    /// Presses a key that writes nothing, this many times.
    pub async fn presses(&mut self, key: Key, times: usize) -> WebDriverResult<()> {
        for _ in 0..times {
            self.effort.keys += 1;
            self.page.keys(key.clone() + "").await?;
        }
        Ok(())
    }

    /// Presses Tab until what has a test id has the focus.
    ///
    /// # Panics
    /// If it never has.
    pub async fn tabs_to(&mut self, testid: &str) -> WebDriverResult<()> {
        // All stops of the longest page.
        const MOST: usize = 400;
        let mut reached = Vec::new();
        for _ in 0..MOST {
            self.presses(Key::Tab, 1).await?;
            let now = self.focused().nonempty().await?;
            if now == testid {
                return Ok(());
            }
            reached.push(now);
        }
        panic!("Tab never reaches {testid}, but {reached:?}");
    }

    /// Test id, or else class or tag, of what has the focus.
    pub fn focused(&self) -> Shown<'_, String> {
        let script = "const e = document.activeElement; return e.dataset.testid || e.className || e.tagName";
        self.page.script(script)
    }

    /// Presses a field and types in place of what it holds, which the press selects.
    pub async fn fills(&mut self, testid: &str, text: &str) -> WebDriverResult<()> {
        self.click(testid).await?;
        let selected = "const e = document.activeElement; return e.selectionEnd - e.selectionStart === e.value.length";
        let selected = || self.page.script::<bool>(selected);
        self.page.until("its text is selected", selected, |is| *is).await?;
        self.types(text).await
    }

    /// Searches a list and takes the first that is found.
    pub async fn picks(&mut self, testid: &str, text: &str) -> WebDriverResult<()> {
        self.fills(testid, text).await?;
        self.presses(Key::Enter, 1).await
    }

    /// Chooses from a menu: a press that opens it, and one on the choice; or the arrows, from choice to choice.
    pub async fn chooses(&mut self, testid: &str, value: &str) -> WebDriverResult<()> {
        if self.hands == Hands::Mouse {
            self.effort.clicks += 2;
            return self.page.choose(testid, value).await;
        }
        self.click(testid).await?;
        let far = "const menu = document.activeElement;
            return [...menu.options].findIndex((option) => option.value === arguments[0]) - menu.selectedIndex";
        let far = self
            .page
            .script_with::<i64>(far, vec![value.into()])
            .until(|_| true)
            .await?;
        let key = if far < 0 { Key::Up } else { Key::Down };
        self.presses(key, far.unsigned_abs() as usize).await?;
        self.page.prop(testid, "value").holds(value).await
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
