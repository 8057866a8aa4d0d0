//! Name of a draft's model: a name of the catalogue, the hub's id of its configuration, or nothing.

use super::{Draft, Key};

impl Draft {
    /// Name of the model for people, commands and files; `None` for a configuration that nobody has named.
    pub fn model_name(&self) -> Option<&str> {
        let name = self.get(Key::Model).trim();
        (!self.has(Key::Config) || is_id(name)).then_some(name)
    }

    /// The hub's id of the draft's configuration; `None` without a configuration, or if it was pasted. The model that
    /// was chosen before it is still in the draft then, but is not its id.
    pub fn config_id(&self) -> Option<&str> {
        self.model_name().filter(|_| self.has(Key::Config))
    }

    /// Sets a configuration that has no id, such as one that was pasted. An id of the configuration before is removed,
    /// since it would name this one.
    pub fn set_config(&mut self, text: impl Into<String>) {
        if is_id(self.get(Key::Model).trim()) {
            self.set(Key::Model, Key::Model.default_text());
        }
        self.set(Key::Config, text);
        self.stand_in(None);
    }
}

/// Returns true for a name in the form of a hub's id, `owner/name` or `owner/name@revision`, that is not in the
/// catalogue. Beside a configuration such a name is the configuration's id; any other is the model that was chosen
/// before.
fn is_id(name: &str) -> bool {
    let (id, revision) = name.split_once('@').unwrap_or((name, "main"));
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_word);
    let is_named = id
        .split_once('/')
        .is_some_and(|(owner, name)| is_part(owner) && is_part(name));
    is_named && !revision.is_empty() && !vramscope_engine::Model::catalogue().contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_the_name_that_it_was_found_for() {
        let of = |model: &str, config: &str| {
            let mut draft = Draft::default();
            draft.set(Key::Model, model);
            draft.set(Key::Config, config);
            draft.model_name().map(str::to_owned)
        };
        assert_eq!(of("gpt2", "").as_deref(), Some("gpt2"));
        assert_eq!(of("someone/model", "{}").as_deref(), Some("someone/model"));
        assert_eq!(of("someone/model@v2", "{}").as_deref(), Some("someone/model@v2"));
        // Chosen before the configuration was pasted.
        for before in ["gpt2", "Qwen/Qwen3-8B", "gtp2", "a/b/c", "a b/c", "/models/x", "a/b@"] {
            assert_eq!(of(before, "{}"), None, "{before}");
        }
    }
}
