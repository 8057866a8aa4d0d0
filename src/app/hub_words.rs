//! Phrases of models that are not built in.

use vramscope_hub::{HubError, MOST_BYTES, Remark, Repository, Trouble, Weights, Wrong};

use crate::part_words::part_words;

part_words! {
    /// Phrases of models that are not built in, and why models are not simulated.
    HubWords of "hub" and "reasons"
}

impl HubWords {
    /// What a person has to know of a model.
    pub fn remark(&self, remark: &Remark) -> String {
        match remark {
            Remark::Alias { given, id, tool } => self.say("r_alias", &[("given", given), ("id", id), ("tool", tool)]),
            Remark::Shape { id, of } => self.say("r_shape", &[("id", id), ("of", of)]),
            Remark::Stored { id, of, weights } => self.say(
                "r_stored",
                &[("id", id), ("of", of), ("meaning", &self.meaning(*weights))],
            ),
            Remark::Revision { revision } => self.say("r_revision", &[("revision", revision)]),
            Remark::Folder { path, id } => self.say("r_folder", &[("path", path), ("id", id)]),
            Remark::Path { path, id } => self.say("r_path", &[("path", path), ("id", id)]),
            Remark::Thinker { id } => self.say("r_thinker", &[("id", id)]),
            Remark::OwnCode { id, .. } => self.say("r_own_code", &[("id", id)]),
            Remark::Larger { id } => self.say("r_larger", &[("id", id)]),
            Remark::AlsoOwnCode { id, file } => self.say("r_also_own_code", &[("id", id), ("file", file)]),
            Remark::NotCompared(why) => self.say("r_not_compared", &[("why", &self.error(why))]),
            Remark::Adapter { id, base, rank: None } => self.say("r_adapter", &[("id", id), ("base", base)]),
            Remark::Adapter {
                id,
                base,
                rank: Some(rank),
            } => self.say(
                "r_adapter_of",
                &[("id", id), ("base", base), ("rank", &rank.to_string())],
            ),
            Remark::MadeFrom { id, base, weights } => self.say(
                "r_made_from",
                &[("id", id), ("base", base), ("meaning", &self.meaning(*weights))],
            ),
            Remark::Pixels(pixels) => self.say("r_pixels", &[("pixels", &pixels.to_string())]),
            Remark::Parameters { id, stated, simulated } => {
                let (_, percent, is_fewer) = Remark::difference(*stated, *simulated);
                let (stated, simulated) = (stated.to_string(), simulated.to_string());
                let values = [
                    ("id", id.as_str()),
                    ("stated", &stated),
                    ("simulated", &simulated),
                    ("percent", &format!("{percent:.2}")),
                ];
                match is_fewer {
                    true => self.say("r_fewer", &values),
                    false => self.say("r_more", &values),
                }
            }
        }
    }

    /// Why a model is not found.
    pub fn error(&self, error: &HubError) -> String {
        let of = |repository: &Repository| repository.to_string();
        match error {
            HubError::Unknown { given, .. } => self.say("e_unknown", &[("given", given)]),
            HubError::Offline { repository, .. } => self.say("e_offline", &[("id", &of(repository))]),
            HubError::NoAnswer { host, why, .. } => {
                self.say("e_no_answer", &[("host", host), ("why", &self.trouble(why))])
            }
            HubError::NoRepository { repository, host, .. } => {
                self.say("e_no_repository", &[("host", host), ("id", &of(repository))])
            }
            HubError::NoRevision { repository, host } => {
                let revision = repository.revision.as_deref().unwrap_or("main");
                let values = [("host", host.as_str()), ("id", &repository.id), ("revision", revision)];
                self.say("e_no_revision", &values)
            }
            HubError::NoConfig { repository } => self.say("e_no_config", &[("id", &of(repository))]),
            HubError::Gated { repository, host, .. } => self.say("e_gated", &[("host", host), ("id", &of(repository))]),
            HubError::TooMany {
                host, seconds: None, ..
            } => self.say("e_too_many", &[("host", host)]),
            HubError::TooMany {
                host,
                seconds: Some(seconds),
                ..
            } => self.say("e_too_many_for", &[("host", host), ("seconds", &seconds.to_string())]),
            HubError::WrongAnswer { host, file, what, .. } => {
                let what = self.word(match what {
                    Wrong::NotObject => "x_not_object",
                    Wrong::Html => "x_html",
                    Wrong::Pointer => "x_pointer",
                    Wrong::NotJson(_) => "x_not_json",
                });
                self.say("e_wrong_answer", &[("host", host), ("file", file), ("what", &what)])
            }
            HubError::NotSimulated { id, why } => {
                let why = self.text(why);
                self.say("e_not_simulated", &[("id", id), ("why", why)])
            }
            HubError::Packed { id, of, weights } => self.say(
                "e_packed",
                &[("id", id), ("of", of), ("meaning", &self.meaning(*weights))],
            ),
            HubError::Circle { repository } => self.say("e_circle", &[("id", &of(repository))]),
            // Paths are not looked up here.
            HubError::Local { .. } | HubError::Refused(_) => self.say("e_refused", &[("text", &error.to_string())]),
        }
    }

    fn trouble(&self, why: &Trouble) -> String {
        match why {
            Trouble::Late { seconds } => self.say("c_late", &[("seconds", &seconds.to_string())]),
            Trouble::Status(status) => self.say("c_status", &[("status", &status.to_string())]),
            Trouble::TooLarge => self.say("c_large", &[("mib", &(MOST_BYTES >> 20).to_string())]),
            Trouble::BrokenOff => self.word("c_broken"),
            Trouble::NotText => self.word("c_not_text"),
            // A browser does not say more.
            Trouble::Other(_) => self.word("c_network"),
        }
    }

    /// What a type of weights means for training.
    fn meaning(&self, weights: Weights) -> String {
        self.word(&format!("w_{}", weights.word()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use vramscope_phrases::gaps;

    use super::*;
    use crate::languages::Locale;

    #[test]
    fn every_language_says_everything_with_the_same_gaps() {
        let all: Vec<&HubWords> = Locale::all().map(HubWords::of).collect();
        for words in &all {
            assert_eq!(
                words.words.keys().collect::<Vec<_>>(),
                all[0].words.keys().collect::<Vec<_>>()
            );
            for (key, text) in &words.words {
                assert_eq!(gaps(text), gaps(&all[0].words[key]), "{key}");
                assert!(!text.contains("--"), "{text}: the page names no flag");
            }
        }
    }

    /// Keys are texts in the source, which the compiler does not check.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests run where there are files")]
    fn the_page_uses_every_phrase_and_no_other() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut sources = std::fs::read_to_string(own.join("hub_words.rs")).expect("a source");
        for entry in std::fs::read_dir(own.join("hub")).expect("a folder of the page") {
            sources += &std::fs::read_to_string(entry.expect("a file").path()).expect("a source");
        }
        let words = &HubWords::of(Locale::default()).words;
        let is_used = |key: &str| sources.contains(&format!("\"{key}\""));
        let unused: Vec<&String> = words
            .keys()
            .filter(|key| !key.starts_with("w_") && !is_used(key))
            .collect();
        assert_eq!(unused, Vec::<&String>::new());
        let used: BTreeSet<&str> = ["say(\"", "word(\"", "live(\""]
            .iter()
            .flat_map(|call| sources.split(call).skip(1))
            .filter_map(|rest| Some(rest.split_once('"')?.0))
            .filter(|key| !key.is_empty())
            .collect();
        assert!(used.len() > 30, "{used:?}");
        for key in used {
            assert!(
                words.contains_key(key),
                "src/app/locales/en/hub/words.json lacks `{key}`"
            );
        }
    }

    #[test]
    fn types_of_weights_have_their_words() {
        let words = HubWords::of(Locale::default());
        let all = [
            Weights::Plain,
            Weights::Nf4,
            Weights::DynamicNf4,
            Weights::Int8,
            Weights::Gptq,
            Weights::Awq,
            Weights::Fp8,
            Weights::Fp4,
            Weights::Compressed,
            Weights::Gguf,
            Weights::Mlx,
            Weights::Graph,
        ];
        for weights in all {
            assert!(
                words.words.contains_key(&format!("w_{}", weights.word())),
                "{weights:?}"
            );
        }
        assert_eq!(
            words.remark(&Remark::Stored {
                id: "a/b-bnb-4bit".into(),
                of: "a/b".into(),
                weights: Weights::Nf4
            }),
            "a/b-bnb-4bit has the shape of a/b; its weights are stored in 4 bits (bitsandbytes NF4): adapters alone train \
             beside them."
        );
    }

    #[test]
    fn what_is_known_and_not_simulated_has_its_reason_in_every_language() {
        for locale in Locale::all().skip(1) {
            for why in vramscope_hub::reasons() {
                let has = HubWords::of(locale).texts.contains_key(why);
                assert!(
                    has,
                    "src/app/locales/{}/hub/reasons.json lacks `{why}`",
                    locale.as_str()
                );
            }
        }
    }
}
