//! Light and dark themes.

use leptos::prelude::*;

use super::{Store, preferences};
use crate::charts::Palette;
use crate::events::listen;
use crate::state::Key;

/// Colour theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Follows the system.
    Auto,
    /// Dark text on a light background.
    Light,
    /// Light text on a dark background.
    Dark,
}

impl Theme {
    /// All themes, in the order of the menu.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Light, Self::Dark];

    /// Stored name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Finds a theme by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }
}

/// Current theme. Charts, which read colours while they draw, depend on it.
#[derive(Debug, Clone, Copy)]
pub struct CurrentTheme(RwSignal<Theme>);

impl CurrentTheme {
    /// Returns the theme that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Current theme; reactive.
    pub fn read(self) -> Theme {
        self.0.get()
    }

    /// Selects a theme, stores it on this machine and removes it from the URL.
    pub fn choose(self, store: Store, theme: Theme) {
        preferences::write("theme", (theme != Theme::Auto).then_some(theme.name()));
        store.set(Key::Theme, "");
        self.show(theme);
    }

    /// Applies a theme to the root element before notifying anything that reads colours.
    fn show(self, theme: Theme) {
        if let Some(root) = document().document_element() {
            // Setting an attribute on the root element cannot fail.
            root.set_attribute("data-theme", theme.name()).ok();
        }
        Palette::forget();
        self.0.set(theme);
    }
}

/// Follows the theme of the URL, an earlier choice, or the system.
pub fn follow(store: Store) {
    let current = CurrentTheme(RwSignal::new(Theme::Auto));
    provide_context(current);
    // Memoised so that other entries do not trigger it: a new theme redraws the charts.
    let from_url = Memo::new(move |_| Theme::named(&store.text(Key::Theme)));
    Effect::new(move || {
        let stored = || preferences::read("theme").and_then(|name| Theme::named(&name));
        current.show(from_url.get().or_else(stored).unwrap_or(Theme::Auto));
    });
    follow_system(current);
}

/// Notifies readers of colours when the system switches between light and dark.
fn follow_system(current: CurrentTheme) {
    let Ok(Some(query)) = window().match_media("(prefers-color-scheme: dark)") else {
        return;
    };
    listen(&query, "change", move |_| {
        Palette::forget();
        current.0.notify();
    });
}
