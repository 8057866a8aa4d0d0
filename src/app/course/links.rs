//! Links that pass on how the page is shown.

/// Pairs that links pass on, so that they apply on the next page too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// Language and theme, each pair followed by `&`.
    pub frame: String,
    /// Presentation mode, followed by `&`; for pages of the course only.
    pub presenting: String,
}

impl Links {
    /// Adds the pairs to an address, if its page takes them.
    pub fn add(&self, to: &str) -> String {
        let Self { frame, presenting } = self;
        match to.split_once('?') {
            Some((page @ "#/course", query)) => format!("{page}?{presenting}{frame}{query}"),
            Some((page @ ("#/" | "#/attention" | "#/diagnose"), query)) => format!("{page}?{frame}{query}"),
            _ => to.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_get_what_they_take() {
        let links = Links {
            frame: "lang=en&".to_owned(),
            presenting: "present=1&".to_owned(),
        };
        for (to, wanted) in [
            ("#/course?row=9.1", "#/course?present=1&lang=en&row=9.1"),
            ("#/?precision=bf16", "#/?lang=en&precision=bf16"),
            ("#/diagnose?gpu=H100", "#/diagnose?lang=en&gpu=H100"),
            ("#/benchmarks?device=H100", "#/benchmarks?device=H100"),
            ("#/course", "#/course"),
        ] {
            assert_eq!(links.add(to), wanted);
            assert_eq!(Links::default().add(to), to);
        }
    }
}
