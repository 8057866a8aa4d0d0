//! One document: its HTML, its links and its headings.

use std::collections::BTreeSet;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// A document.
pub struct Page {
    /// The first heading.
    pub title: String,
    /// Links and images, as they are written.
    pub links: Vec<String>,
    /// Names of its headings, as links give them.
    pub anchors: BTreeSet<String>,
    /// Text below each heading, for the search.
    pub sections: Vec<Section>,
    text: String,
}

/// Text below a heading.
pub struct Section {
    /// The heading.
    pub title: String,
    /// Its name in links.
    pub anchor: String,
    /// The words below it.
    pub words: String,
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
}

impl Page {
    /// Reads a document.
    pub fn read(text: &str) -> Self {
        // What stands between lines of dashes at the beginning is for programs.
        let text = match text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")) {
            Some((_, body)) => body,
            None => text,
        };
        let mut page = Self {
            title: String::new(),
            links: Vec::new(),
            anchors: BTreeSet::new(),
            sections: Vec::new(),
            text: text.to_owned(),
        };
        let mut heading: Option<String> = None;
        for event in parser(text) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let title = heading.take().unwrap_or_default();
                    page.begin(title);
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string())
                }
                Event::Text(words) | Event::Code(words) => match &mut heading {
                    Some(title) => title.push_str(&words),
                    None => page.add(&words),
                },
                Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::TableCell | TagEnd::Paragraph) => {
                    page.add(" ")
                }
                _ => {}
            }
        }
        page
    }

    fn begin(&mut self, title: String) {
        let anchor = unused(&slug(&title), &self.anchors);
        if self.title.is_empty() {
            self.title.clone_from(&title);
        }
        self.anchors.insert(anchor.clone());
        self.sections.push(Section {
            title,
            anchor,
            words: String::new(),
        });
    }

    fn add(&mut self, words: &str) {
        if let Some(section) = self.sections.last_mut() {
            section.words.push_str(words);
        }
    }

    /// Formats the document as HTML, with its links as `follow` gives them.
    pub fn html(&self, follow: impl Fn(&str) -> String) -> String {
        let mut anchors = self.sections.iter().map(|section| section.anchor.clone());
        let follow = |to: CowStr<'_>| CowStr::from(follow(&to));
        let events = parser(&self.text).map(|event| match event {
            Event::Start(Tag::Heading {
                level, classes, attrs, ..
            }) => Event::Start(Tag::Heading {
                level,
                id: anchors.next().map(CowStr::from),
                classes,
                attrs,
            }),
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => Event::Start(Tag::Link {
                link_type,
                dest_url: follow(dest_url),
                title,
                id,
            }),
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            }) => Event::Start(Tag::Image {
                link_type,
                dest_url: follow(dest_url),
                title,
                id,
            }),
            event => event,
        });
        let mut out = String::new();
        html::push_html(&mut out, events);
        out
    }

    /// Headings of the second level, with their names in links.
    pub fn parts(&self) -> Vec<(&str, &str)> {
        let mut sections = self.sections.iter();
        let mut parts = Vec::new();
        for event in parser(&self.text) {
            let Event::Start(Tag::Heading { level, .. }) = event else {
                continue;
            };
            let Some(section) = sections.next() else { break };
            if level == HeadingLevel::H2 {
                parts.push((section.title.as_str(), section.anchor.as_str()));
            }
        }
        parts
    }
}

/// A heading's name in links, as hosts of code make it: letters, digits, dashes and underscores, blanks as dashes.
fn slug(title: &str) -> String {
    let kept = |char: char| match char {
        ' ' => Some('-'),
        '-' | '_' => Some(char),
        _ if char.is_alphanumeric() => Some(char),
        _ => None,
    };
    title.trim().to_lowercase().chars().filter_map(kept).collect()
}

/// A name that no heading before has.
fn unused(name: &str, used: &BTreeSet<String>) -> String {
    let mut numbered = (1..).map(|number| format!("{name}-{number}"));
    match used.contains(name) {
        false => name.to_owned(),
        true => numbered.find(|name| !used.contains(name)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_names_that_links_give() {
        let page = Page::read("# `a_b` & c's way!\n\ntext\n\n## x\n\n## x\n");
        let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["a_b--cs-way", "x", "x-1"]);
        assert_eq!(page.title, "a_b & c's way!");
        assert_eq!(page.parts(), [("x", "x"), ("x", "x-1")]);
    }
}
