//! Masks secrets: what is quoted is shown, and may be shared.

use std::sync::LazyLock;

use regex::Regex;

/// Tokens of hubs and clouds by their shape, values of keys whose name says that they are secret, and passwords in
/// addresses. The first group stays.
static SECRETS: LazyLock<Regex> = LazyLock::new(|| {
    let known = [
        r"(?:hf_|sk-|ghp_|gho_|github_pat_|glpat-|xox[bp]-|AKIA|ASIA|ms-)[A-Za-z0-9_-]{12,}",
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
        r"\b[0-9a-f]{40}\b",
    ]
    .join("|");
    let named = r#"((?i:(?:api|access|auth|secret|private)[_-]?(?:key|token)|(?:hub|hf|wandb|swanlab|ms)_(?:token|api_key)|hub-token|\btoken|passwd|password|secret|authorization|bearer)["']?\s*[=: ]\s*["']?(?:bearer )?)[^\s"',;}{()\[\]]{6,}"#;
    let address = r"(\w://[^\s:/@]{1,64}:)[^\s@/]{1,128}@";
    Regex::new(&format!("{named}|{address}|{known}")).expect("tested")
});

/// The text with secrets replaced by `***`.
pub fn masked(text: &str) -> String {
    let masked = SECRETS.replace_all(text, |found: &regex::Captures<'_>| {
        let kept = found.get(1).or_else(|| found.get(2)).map_or("", |kept| kept.as_str());
        let end = if found.get(2).is_some() { "@" } else { "" };
        format!("{kept}***{end}")
    });
    masked.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show() {
        for (text, shown) in [
            ("export HF_TOKEN=hf_abcdefghijklmnopqrst", "export HF_TOKEN=***"),
            ("--hub_token 12ab34cd56 --lr 1e-4", "--hub_token *** --lr 1e-4"),
            (
                "wandb login 0123456789abcdef0123456789abcdef01234567",
                "wandb login ***",
            ),
            ("https://me:pass@host/x", "https://me:***@host/x"),
            ("{\"api_key\": \"sk-abcdefghijklmnop\"}", "{\"api_key\": \"***\"}"),
            (
                "max_tokens: 2048, tokens per second",
                "max_tokens: 2048, tokens per second",
            ),
        ] {
            assert_eq!(masked(text), shown);
        }
    }
}
