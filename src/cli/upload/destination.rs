//! The address of a server that receives records.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ureq::http::Uri;

/// URL of the server that receives records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination(String);

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "wanted the server's address, such as https://vramscope.example";
        let uri: Uri = text.parse().map_err(|error| format!("{error}; {wanted}"))?;
        let host = uri.host().unwrap_or_default();
        match uri.scheme_str() {
            _ if host.is_empty() => Err(wanted.into()),
            _ if uri.query().is_some() || text.contains('@') => Err(format!("no ? and no @ may be in it; {wanted}")),
            Some("https") => Ok(Self(text.trim_end_matches('/').to_owned())),
            Some("http") if is_this_machine(host) => Ok(Self(text.trim_end_matches('/').to_owned())),
            Some("http") => Err(format!(
                "over http:// everybody on the way could read the token; use https://{host}"
            )),
            _ => Err(wanted.into()),
        }
    }
}

impl Destination {
    /// URL of a path on the server.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_this_machine(host: &str) -> bool {
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_over_https_or_stays_on_this_machine() {
        let read = |text: &str| text.parse::<Destination>();
        assert_eq!(
            read("https://a.example/team/").expect("a server").path("/api"),
            "https://a.example/team/api"
        );
        for here in ["http://localhost:8080", "http://127.0.0.1:1/", "http://[::1]:1"] {
            assert!(read(here).is_ok(), "{here}");
        }
        for (text, why) in [
            ("http://a.example", "https://a.example"),
            ("http://127.0.0.1.a.example", "use https"),
            ("ftp://a.example", "wanted"),
            ("a.example", "wanted"),
            ("https://bob:secret@a.example", "no @"),
            ("", "wanted"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
