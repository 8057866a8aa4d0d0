//! Reads and writes the page's state in the fragment of its URL.

use super::escape::{escape, pack, quote, unescape, unpack};
use super::{Draft, Key, Route};

/// Parts of a URL that could not be used, as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlProblem {
    /// No page has this path.
    UnknownPage(String),
    /// No key has this name.
    UnknownKey(String),
    /// The value of this key is truncated or garbled.
    Garbled(Key),
    /// This key occurs more than once; the first value applies.
    Repeated(Key),
}

/// Fragment of a URL: a route and the entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Address {
    /// The page.
    pub route: Route,
    /// Entries.
    pub draft: Draft,
}

impl Address {
    /// Formats the fragment including `#`, such as `#/?model=gpt2&batch=4`. The default setup names its model: without any
    /// entry a link would open on whatever setup a new visit opens on.
    pub fn to_fragment(&self) -> String {
        let query = self.draft.to_query();
        if self.draft.entries().any(|(key, _)| key.decides_run()) {
            return self.route.fragment(&query);
        }
        let rest = if query.is_empty() { query } else { format!("&{query}") };
        self.route
            .fragment(&format!("model={}{rest}", Key::Model.default_text()))
    }

    /// Formats the fragment with every entry that decides a run, also where it is a default: a link that is kept for long
    /// stays the same run when a default changes.
    pub fn to_whole_fragment(&self) -> String {
        let pairs: Vec<String> = self.whole().map(pair).collect();
        self.route.fragment(&pairs.join("&"))
    }

    /// All entries that decide a run, with their defaults, and all others that differ from theirs. Beside a configuration
    /// the name of another model decides nothing.
    fn whole(&self) -> impl Iterator<Item = (Key, &str)> {
        let is_named = self.draft.model_name().is_some();
        let is_written = move |key: Key, text: &str| {
            let decides = key.decides_run() && !text.is_empty();
            decides && (key != Key::Model || is_named)
        };
        let all = Key::all().map(|key| (key, self.draft.get(key)));
        all.filter(move |(key, text)| is_written(*key, text) || self.draft.has(*key))
    }

    /// Parses a fragment with or without `#`. Keeps all valid parts and reports the rest.
    pub fn read(fragment: &str) -> (Self, Vec<UrlProblem>) {
        let text = fragment.strip_prefix('#').unwrap_or(fragment);
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let mut address = Self::default();
        let mut problems = Vec::new();
        match Route::of_path(path) {
            Some(route) => address.route = route,
            None => problems.push(UrlProblem::UnknownPage(path.to_owned())),
        }
        problems.extend(address.draft.read_pairs(query));
        (address, problems)
    }

    /// Applies the frame's keys from the query before the `#`, such as `?embed=1`, and ignores the rest, which belongs
    /// to the server. The fragment takes precedence.
    pub fn read_query(&mut self, query: &str) {
        let parts = query.trim_start_matches('?').split('&');
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let key = Key::OF_FRAME
                .into_iter()
                .find(|k| k.name() == name && !self.draft.has(*k));
            if let Some((key, text)) = key.zip(unescape(value)) {
                self.draft.set(key, text);
            }
        }
    }

    /// Formats the attributes of a `<vramscope-widget>` that shows the same state: of the plan its verdict, for which an
    /// article has room. Every entry that decides is written out, so that a changed default does not affect it.
    pub fn to_attributes(&self) -> String {
        let attribute = |(key, text): (Key, &str)| match key {
            Key::Config | Key::Compare | Key::NotThisRun => format!(" {}=\"{}\"", key.name(), pack(text)),
            _ => format!(" {}=\"{}\"", key.name(), quote(text)),
        };
        let widget = match self.route {
            Route::Attention | Route::Course => Some(format!(" widget=\"{}\"", &self.route.path()[1..])),
            Route::Plan if !self.draft.has(Key::Widget) => Some(" widget=\"verdict\"".to_owned()),
            _ => None,
        };
        self.whole().map(attribute).chain(widget).collect()
    }
}

fn pair((key, text): (Key, &str)) -> String {
    let value = match key {
        Key::Config | Key::Compare | Key::NotThisRun => pack(text),
        _ => escape(text),
    };
    format!("{}={value}", key.name())
}

impl Draft {
    /// Formats the entries as a query such as `model=gpt2&batch=4`.
    pub fn to_query(&self) -> String {
        self.entries().map(pair).collect::<Vec<_>>().join("&")
    }

    /// Sets the pairs of a query and returns those that are invalid.
    pub fn read_pairs(&mut self, query: &str) -> Vec<UrlProblem> {
        let parts = query.split('&').filter(|p| !p.is_empty());
        parts.filter_map(|part| self.read_pair(part).err()).collect()
    }

    fn read_pair(&mut self, part: &str) -> Result<(), UrlProblem> {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let key = Key::named(name).ok_or_else(|| UrlProblem::UnknownKey(name.to_owned()))?;
        let text = match key {
            Key::Config | Key::Compare | Key::NotThisRun => unpack(value),
            _ => unescape(value),
        };
        let text = text.ok_or(UrlProblem::Garbled(key))?;
        if self.has(key) {
            return Err(UrlProblem::Repeated(key));
        }
        self.set(key, text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vramscope_engine::setup::Setting;

    fn addresses() -> impl Strategy<Value = Address> {
        let entries = prop::collection::vec((prop::sample::select(Key::all().collect::<Vec<_>>()), ".*"), 0..12);
        (prop::sample::select(Route::ALL), entries).prop_map(|(route, entries)| {
            let mut draft = Draft::default();
            for (key, text) in entries {
                draft.set(key, text);
            }
            Address { route, draft }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(address in addresses()) {
            let fragment = address.to_fragment();
            prop_assert!(fragment.is_ascii());
            prop_assert_eq!(Address::read(&fragment), (address, Vec::new()));
        }

        #[test]
        fn anything_can_be_read(fragment in ".*") {
            let (address, _) = Address::read(&fragment);
            prop_assert_eq!(Address::read(&address.to_fragment()), (address, Vec::new()));
        }
    }

    #[test]
    fn what_cannot_be_used_is_named_and_the_rest_kept() {
        let (address, problems) = Address::read("#/nowhere?batch=4&speed=9&seq=%4&config=!&batch=5");
        assert_eq!(
            address.draft.entries().collect::<Vec<_>>(),
            [(Setting::Batch.into(), "4")]
        );
        assert_eq!(
            problems,
            [
                UrlProblem::UnknownPage("/nowhere".into()),
                UrlProblem::UnknownKey("speed".into()),
                UrlProblem::Garbled(Setting::Seq.into()),
                UrlProblem::Garbled(Key::Config),
                UrlProblem::Repeated(Setting::Batch.into()),
            ]
        );
    }

    #[test]
    fn the_query_says_only_what_concerns_the_frame() {
        let (mut address, _) = Address::read("#/?batch=4&widget=phases");
        address.read_query("?embed=1&widget=verdict&seq=8&utm=x&id=a%20b");
        let wanted = [
            (Setting::Batch.into(), "4"),
            (Key::Embed, "1"),
            (Key::Widget, "phases"),
            (Key::Id, "a b"),
        ];
        assert_eq!(address.draft.entries().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn attributes_name_model_and_card_and_what_differs() {
        let mut draft = Draft::default();
        draft.set(Key::Gpu, "a \"b\" <&>");
        draft.set(Setting::Batch, "4");
        let mut address = Address {
            draft,
            ..Address::default()
        };
        let gpu = "gpu=\"a &quot;b&quot; &lt;&amp;>\"";
        let attributes = address.to_attributes();
        assert!(
            attributes.starts_with(&format!(" model=\"llava-1.5-7b\" {gpu} ")),
            "{attributes}"
        );
        for part in [" batch=\"4\"", " ckpt=\"none\"", " widget=\"verdict\""] {
            assert!(attributes.contains(part), "{part}: {attributes}");
        }
        address.route = Route::Attention;
        let attention = " widget=\"attention\"";
        assert!(address.to_attributes().ends_with(attention));
        address.route = Route::Course;
        assert!(address.to_attributes().ends_with(" widget=\"course\""));
        address.route = Route::Plan;
        address.draft.set(Key::Config, "{}");
        let attributes = address.to_attributes();
        assert!(
            attributes.contains(" config=\"e30\"") && !attributes.contains(" model="),
            "{attributes}"
        );
    }

    #[test]
    fn defaults_leave_the_url_short() {
        let mut draft = Draft::default();
        draft.set(Setting::Batch, "4");
        draft.set(Setting::Batch, "1");
        let mut address = Address {
            draft,
            ..Address::default()
        };
        assert_eq!(address.to_fragment(), "#/?model=llava-1.5-7b");
        assert!(!super::super::is_open(&address.to_fragment()));
        address.draft.set(Key::Lang, "en");
        assert_eq!(address.to_fragment(), "#/?model=llava-1.5-7b&lang=en");
        address.draft.set(Setting::Batch, "2");
        assert_eq!(address.to_fragment(), "#/?batch=2&lang=en");
    }

    #[test]
    fn a_link_to_keep_names_every_entry_that_decides() {
        let mut address = Address::default();
        address.draft.set(Setting::Batch, "2");
        let link = address.to_whole_fragment();
        for part in [
            "model=llava-1.5-7b",
            "gpu=H100%20SXM",
            "batch=2",
            "ckpt=none",
            "world=1",
        ] {
            assert!(link.contains(part), "{part}: {link}");
        }
        assert_eq!(Address::read(&link), (address.clone(), Vec::new()));
        address.draft.set(Key::Config, "{}");
        assert!(!address.to_whole_fragment().contains("model="));
    }
}
