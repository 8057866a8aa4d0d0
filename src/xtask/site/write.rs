//! Writes the site's files.

use std::fs;
use std::path::Path;

use super::page::Page;
use super::{MANUAL, Site, Target, address, search, target, way};
use crate::Failure;

const STYLE: &str = "body{margin:0;font:16px/1.5 system-ui,sans-serif;display:grid;grid-template-columns:16rem minmax(0,1fr);
color:#1b1f24;background:#fff}nav{padding:1rem;border-right:1px solid #d0d7de;position:sticky;top:0;height:100vh;overflow:auto;
box-sizing:border-box}nav ul{list-style:none;padding:0;margin:.5rem 0}nav li{margin:.2rem 0}nav ul ul{padding-left:1rem;font-size:.9em}
main{padding:1rem 2rem 4rem;max-width:60rem}table{border-collapse:collapse;display:block;overflow-x:auto}td,th{border:1px solid
#d0d7de;padding:.25rem .5rem;vertical-align:top}pre{background:#f6f8fa;padding:.75rem;overflow-x:auto}code{font-size:.9em}
img{max-width:100%}a{color:#0550ae}input{width:100%;box-sizing:border-box;padding:.4rem;font:inherit}[aria-current]{font-weight:bold}
@media(max-width:50rem){body{display:block}nav{position:static;height:auto;border:0}}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}a{color:#58a6ff}
td,th,nav{border-color:#30363d}}";

impl Site {
    /// Writes all pages, the files that they lead to, and the search, into a folder; what was there of an older site goes.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        for (path, page) in &self.pages {
            put(folder, &address(path, false), &self.document(path, page))?;
        }
        for path in &self.folders {
            put(folder, &address(path, true), &self.listing(path))?;
        }
        for path in &self.files {
            let to = folder.join(path);
            fs::create_dir_all(to.parent().unwrap_or(folder))?;
            fs::copy(self.root.join(path), to)?;
        }
        let pages = self.pages.iter().map(|(path, page)| (address(path, false), page));
        put(folder, "search.js", &search::script(pages))
    }

    /// A whole page.
    fn document(&self, path: &str, page: &Page) -> String {
        let own = address(path, false);
        let body = page.html(|link| self.follow(path, &own, link));
        frame(&page.title, &own, &self.navigation(path, &own, page), &body)
    }

    /// A link of a document as it is on the site.
    fn follow(&self, path: &str, own: &str, link: &str) -> String {
        let Target::Inside(to, heading) = target(path, link) else {
            return link.to_owned();
        };
        let to = way(own, &address(&to, self.folders.contains(&to)));
        heading.map_or_else(|| to.clone(), |heading| format!("{to}#{heading}"))
    }

    /// The manual's pages, with the parts of this one.
    fn navigation(&self, path: &str, own: &str, page: &Page) -> String {
        let mut out = String::from("<ul>");
        for of in MANUAL {
            let Some(other) = self.pages.get(of) else { continue };
            let current = if of == path { " aria-current=\"page\"" } else { "" };
            let to = way(own, &address(of, false));
            out += &format!("<li><a href=\"{to}\"{current}>{}</a>", escaped(&other.title));
            if of == path {
                let parts = page.parts().into_iter();
                let parts: String = parts
                    .map(|(title, anchor)| format!("<li><a href=\"#{anchor}\">{}</a></li>", escaped(title)))
                    .collect();
                out += &format!("<ul>{parts}</ul>");
            }
            out += "</li>";
        }
        out + "</ul>"
    }

    /// The files of a folder that a page leads to.
    fn listing(&self, folder: &str) -> String {
        let own = address(folder, true);
        let inside = self
            .files
            .iter()
            .filter(|file| file.rsplit_once('/').is_some_and(|(of, _)| of == folder));
        let links: String = inside
            .map(|file| {
                let name = escaped(file.rsplit('/').next().unwrap_or(file));
                format!("<li><a href=\"{}\">{name}</a></li>", way(&own, file))
            })
            .collect();
        let body = format!("<h1>{}</h1><ul>{links}</ul>", escaped(folder));
        frame(folder, &own, &self.navigation("", &own, &Page::read("")), &body)
    }
}

fn frame(title: &str, own: &str, navigation: &str, body: &str) -> String {
    let (title, script) = (escaped(title), way(own, "search.js"));
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style>\n<nav><input id=\"search\" type=\"search\" placeholder=\"Search\" \
         aria-label=\"Search the manual\"><ul id=\"found\" hidden></ul>{navigation}</nav>\n<main>{body}</main>\n\
         <script src=\"{script}\"></script></html>\n"
    )
}

fn put(folder: &Path, path: &str, text: &str) -> Result<(), Failure> {
    let to = folder.join(path);
    fs::create_dir_all(to.parent().unwrap_or(folder))?;
    fs::write(&to, text).map_err(|error| Failure::new(format!("{}: {error}", to.display())))
}

/// Text in HTML.
pub fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}
