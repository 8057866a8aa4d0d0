use leptos::prelude::*;

use super::{Store, preferences};
use crate::charts::Palette;
use crate::events::listen;
use crate::state::Key;

/// Light or dark, or as the system has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// As the system has it.
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// All, in the order of the menu.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Light, Self::Dark];

    /// The stored name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }
}

/// The theme in force; charts, which read colours when they draw, follow it.
#[derive(Debug, Clone, Copy)]
pub struct CurrentTheme(RwSignal<Theme>);

impl CurrentTheme {
    /// The theme that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// The theme, followed as it changes.
    pub fn read(self) -> Theme {
        self.0.get()
    }

    /// The person chose a theme: it holds on this machine, and no longer comes from the URL.
    pub fn choose(self, store: Store, theme: Theme) {
        preferences::write("theme", (theme != Theme::Auto).then_some(theme.name()));
        store.set(Key::Theme, "");
        self.show(theme);
    }

    /// The root element is marked before anyone who follows the theme reads a colour.
    fn show(self, theme: Theme) {
        if let Some(root) = document().document_element() {
            // An attribute of the root element can always be set.
            root.set_attribute("data-theme", theme.name()).ok();
        }
        Palette::forget();
        self.0.set(theme);
    }
}

/// Keeps the page in the theme of the URL, of an earlier choice, or of the system.
pub fn follow(store: Store) {
    let current = CurrentTheme(RwSignal::new(Theme::Auto));
    provide_context(current);
    // Other entries leave it alone: what follows the theme is drawn anew.
    let from_url = Memo::new(move |_| Theme::named(&store.text(Key::Theme)));
    Effect::new(move || {
        let stored = || preferences::read("theme").and_then(|name| Theme::named(&name));
        current.show(from_url.get().or_else(stored).unwrap_or(Theme::Auto));
    });
    follow_system(current);
}

/// The system went dark or light: whoever reads colours has to read them again.
fn follow_system(current: CurrentTheme) {
    let Ok(Some(query)) = window().match_media("(prefers-color-scheme: dark)") else {
        return;
    };
    listen(&query, "change", move |_| {
        Palette::forget();
        current.0.notify();
    });
}
