//! Builds the page as a single file that works from `file://`: styles and scripts inline, the compiled parts as gzip in
//! text ([`dense`]), which `src/app/js/unpack.js` unpacks, and a content security policy with digests of the inline parts.

use std::io::Write as _;
use std::num::NonZeroU64;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::dense::dense;
use super::kept::kept;
use super::markup::{Element, rewrite};
use super::{PAGE, base64, sha256};
use crate::commands::Build;
use crate::{Failure, root};

/// Script that registers the service worker, which a single file does not need.
const OFFLINE: &str = "offline.js";

/// Returns the whole page as one text, with its parts compressed as far as `how` allows.
///
/// # Errors
/// If the page needs something that a single file cannot contain.
pub fn of(dist: &Path, how: Build) -> Result<String, Failure> {
    if dist.join("snippets").exists() {
        return Err(Failure::new(
            "wasm-bindgen wrote snippets, which the single file cannot carry",
        ));
    }
    let html = std::fs::read_to_string(dist.join(PAGE))?;
    let mut page = Carried::default();
    let html = rewrite(&html, &["link", "script"], |element| page.take_in((dist, how), element))?;
    let policy = |element: Element| {
        let policy = element.attribute("content").unwrap_or_default();
        let is_policy = element.attribute("http-equiv") == Some("Content-Security-Policy");
        // A file that is passed on asks no hub.
        if element.attribute("name") == Some("model-hub") {
            return Ok(Some("<meta name=\"model-hub\" content=\"\">".to_owned()));
        }
        Ok(is_policy.then(|| {
            let policy = page.policy(policy);
            format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")
        }))
    };
    let html = rewrite(&html, &["meta"], policy)?;
    let head = format!("<style>{}</style>\n{}</head>", page.styles, page.parts);
    Ok(html.replacen("</head>", &head, 1))
}

/// Contents moved into the single file.
#[derive(Default)]
struct Carried {
    /// All styles in one element, so that one digest is enough.
    styles: String,
    /// Scripts, each with its own digest.
    scripts: Vec<String>,
    /// Script elements that hold the compiled parts.
    parts: String,
}

impl Carried {
    /// Replacement for an element in the single file.
    fn take_in(&mut self, (dist, how): (&Path, Build), element: Element) -> Result<Option<String>, Failure> {
        if element.is("script") {
            return self.take_in_script((dist, how), element).map(Some);
        }
        let address = element.attribute("href").unwrap_or_default();
        match element.attribute("rel") {
            Some("stylesheet") => {
                let text = std::fs::read_to_string(dist.join(address))?;
                if text.contains("url(") || text.contains("</style") {
                    return Err(Failure::new(format!("{address} asks for another file")));
                }
                self.styles.push_str(&text);
                Ok(Some(String::new()))
            }
            Some("icon") => {
                let icon = base64(std::fs::read(dist.join(address))?);
                Ok(Some(format!(
                    "<link rel=\"icon\" href=\"data:image/svg+xml;base64,{icon}\">"
                )))
            }
            // Drop hints, and files for an installed page.
            _ => Ok(Some(String::new())),
        }
    }

    /// Inlines a script. The data attributes of the script that starts the page name the parts that it loads.
    fn take_in_script(&mut self, (dist, how): (&Path, Build), element: Element) -> Result<String, Failure> {
        let address = element.attribute("src").unwrap_or_default();
        if address == OFFLINE {
            return Ok(String::new());
        }
        let mut text = std::fs::read_to_string(dist.join(address))?;
        let mut names = String::new();
        let parts: Vec<_> = element.data().collect();
        let pack = |address: &str| Ok::<_, Failure>(dense(&gzip(&std::fs::read(dist.join(address))?, how)?));
        let packed: Vec<_> = std::thread::scope(|scope| {
            let packers: Vec<_> = parts.iter().map(|(_, address)| scope.spawn(|| pack(address))).collect();
            packers.into_iter().map(|packer| packer.join()).collect()
        });
        for ((name, _), part) in parts.iter().zip(packed) {
            let part = part.map_err(|_| Failure::new(format!("{name} cannot be packed")))??;
            self.parts.push_str(&format!(
                "<script type=\"text/plain\" id=\"part-{name}\">{part}</script>\n"
            ));
            names.push_str(&format!(" data-{name}=\"\""));
        }
        if !names.is_empty() {
            let unpack = std::fs::read_to_string(root().join("src/app/js/unpack.js"))?;
            text = format!("{unpack}\n{text}");
        }
        if text.contains("</script") {
            return Err(Failure::new(format!("{address} would end its own element")));
        }
        let script = format!("<script type=\"module\"{names}>{text}</script>");
        self.scripts.push(text);
        Ok(script)
    }

    /// The page's policy with digests and addresses of what the page itself unpacks, instead of its host: a file has no
    /// host.
    fn policy(&self, of_page: &str) -> String {
        let own = |text: &str| format!("'sha256-{}'", base64(sha256(text)));
        let directives = of_page.split(';').filter_map(|directive| {
            let mut words = directive.split_whitespace();
            let name = words.next()?;
            // Neither the page's host nor that of a model hub.
            let is_host = |word: &&str| *word == "'self'" || word.starts_with("http");
            let mut sources: Vec<_> = words.filter(|word| !is_host(word)).map(str::to_owned).collect();
            match name {
                "script-src" => {
                    sources.extend(self.scripts.iter().map(|text| own(text)));
                    // Address of the program's own script.
                    sources.push("data:".to_owned());
                }
                // The page's own parts, which it and its workers fetch.
                "connect-src" => sources.extend(["blob:", "data:"].map(str::to_owned)),
                "style-src" => sources.push(own(&self.styles)),
                _ => (),
            }
            // A directive without a source falls back to `default-src 'none'`.
            (!sources.is_empty()).then(|| format!("{name} {}", sources.join(" ")))
        });
        directives.collect::<Vec<_>>().join("; ")
    }
}

fn gzip(bytes: &[u8], how: Build) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    match how {
        // This is 5% denser, but takes half a minute.
        Build::Published => Ok(kept("zopfli", bytes, || {
            zopfli::compress(options(), zopfli::Format::Gzip, bytes, &mut out).map(|()| out)
        })?),
        Build::Local | Build::Quick => {
            GzEncoder::new(&mut out, Compression::fast()).write_all(bytes)?;
            Ok(out)
        }
    }
}

fn options() -> zopfli::Options {
    zopfli::Options {
        // More iterations save only 0.1%.
        iteration_count: NonZeroU64::MIN,
        ..zopfli::Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_what_is_inside_and_no_host() {
        let page = Carried {
            styles: "p{}".into(),
            scripts: vec!["1".into()],
            ..Carried::default()
        };
        let policy = page.policy("default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self' https://hub.example; worker-src 'self' blob:");
        assert_eq!(
            policy,
            "default-src 'none'; \
             script-src 'wasm-unsafe-eval' 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s=' data:; \
             style-src 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='; \
             connect-src blob: data:; worker-src blob:"
        );
    }
}
