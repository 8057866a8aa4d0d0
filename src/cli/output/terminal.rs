//! Properties of the terminal: width and character set.

use std::env;

/// Narrowest and widest layout in columns: bars are useless below, and long lines are hard to read above.
const WIDTHS: (usize, usize) = (48, 100);

/// Width of the layout in columns: the terminal's, else `COLUMNS`, else 80.
pub fn width() -> usize {
    let from_terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let from_env = || env::var("COLUMNS").ok()?.parse().ok();
    from_terminal()
        .or_else(from_env)
        .unwrap_or(80)
        .clamp(WIDTHS.0, WIDTHS.1)
}

/// Returns true if the locale's character set is UTF-8, by POSIX's variables in their order. Terminals on Windows
/// always support Unicode.
pub fn is_utf8_locale() -> bool {
    if cfg!(windows) {
        return true;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_some_and(|locale| is_utf8(&locale))
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::is_utf8;

    #[test]
    fn a_locale_names_its_character_set() {
        for yes in ["C.UTF-8", "en_US.UTF-8", "zh_TW.utf8"] {
            assert!(is_utf8(yes), "{yes}");
        }
        for no in ["C", "POSIX", "en_US.ISO-8859-1", "zh_TW.big5"] {
            assert!(!is_utf8(no), "{no}");
        }
    }
}
