//! The hub that the page may ask for the `config.json` of models that are not built in: its address in the page's head, and
//! its host in the page's policy, which lets the page ask no other.

use super::published::Published;
use crate::{Failure, root};

/// Variable that names another hub, or none if it is empty, as for Hugging Face's own libraries.
const ENDPOINT: &str = "HF_ENDPOINT";
/// File with the address of the hub, which the resolver of models reads too.
const DEFAULT: &str = "src/hub/hugging_face.txt";
/// Place of the address in the page's head.
const META: &str = "<meta name=\"model-hub\" content=\"\">";
/// Place of the host in the page's policy.
const CONNECT: &str = "connect-src 'self';";

/// Writes the hub of this build into the page.
///
/// # Errors
/// If `HF_ENDPOINT` is no address, or the page has no place for it.
pub fn write(page: &mut Published) -> Result<(), Failure> {
    let address = match std::env::var(ENDPOINT) {
        Ok(given) => given,
        Err(_) => std::fs::read_to_string(root().join(DEFAULT))?,
    };
    page.html = with_hub(&page.html, &address)?;
    Ok(())
}

/// A page that may ask a hub; none if the address is empty.
fn with_hub(html: &str, address: &str) -> Result<String, Failure> {
    let address = address.trim().trim_end_matches('/');
    if address.is_empty() {
        return Ok(html.to_owned());
    }
    let address = match address.split_once("://") {
        Some(("http" | "https", _)) => address.to_owned(),
        Some(_) => return Err(Failure::new(format!("{ENDPOINT}: {address} is no address of a server"))),
        None => format!("https://{address}"),
    };
    // Anything else could end the attribute, or the directive.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]".contains(c);
    if !address.chars().all(is_plain) {
        return Err(Failure::new(format!(
            "{ENDPOINT}: {address} is no plain address, such as https://mirror.example/hf"
        )));
    }
    let host = address.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    if html.matches(META).count() != 1 || html.matches(CONNECT).count() != 1 {
        return Err(Failure::new(
            "index.html has no place for the address of a hub".to_owned(),
        ));
    }
    let html = html.replace(META, &format!("<meta name=\"model-hub\" content=\"{address}\">"));
    Ok(html.replace(CONNECT, &format!("connect-src 'self' {host};")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<meta content=\"connect-src 'self'; worker-src 'self'\"><meta name=\"model-hub\" content=\"\">";

    #[test]
    fn the_policy_names_the_host_alone() {
        for (given, address, host) in [
            (
                "https://mirror.example/hf/",
                "https://mirror.example/hf",
                "https://mirror.example",
            ),
            ("mirror.example", "https://mirror.example", "https://mirror.example"),
            (
                "http://127.0.0.1:8080\n",
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080",
            ),
        ] {
            let page = with_hub(PAGE, given).expect("it is an address");
            let wanted = format!(
                "<meta content=\"connect-src 'self' {host}; worker-src 'self'\"><meta name=\"model-hub\" content=\"{address}\">"
            );
            assert_eq!(page, wanted);
        }
        for none in ["", " ", "/"] {
            assert_eq!(with_hub(PAGE, none).expect("it asks none"), PAGE);
        }
        for wrong in [
            "https://a b",
            "https://a\"",
            "https://a;script-src *",
            "ftp://a",
            "https://a'",
        ] {
            assert!(with_hub(PAGE, wrong).is_err(), "{wrong}");
        }
        assert!(with_hub("<html>", "https://a").is_err());
    }

    #[test]
    fn the_page_has_a_place_for_it() {
        let page = std::fs::read_to_string(root().join(super::super::PAGE)).expect("the page");
        assert!(with_hub(&page, "https://mirror.example").is_ok());
    }
}
