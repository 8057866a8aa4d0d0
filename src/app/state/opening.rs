//! The setup on which a visit opens that brings none of its own: as tools set it by default, on a card that it fits.

use vramscope_engine::setup::Setting;

use super::{Draft, Key};

/// What differs from the engine's defaults. Tools train adapters with gradient checkpointing on; the engine's own step
/// leaves both to the person. The length is the model's own, so that it is right for the next model too.
const OPENING: [(Key, &str); 4] = [
    (Key::Model, "qwen2.5-vl-7b"),
    (Key::Gpu, "RTX 4090"),
    (Key::Setting(Setting::Ckpt), "full"),
    (Key::Setting(Setting::Freeze), "lora"),
];

/// Returns true if a fragment names no entry that decides a run, so that the page may choose what it opens on.
pub fn is_open(fragment: &str) -> bool {
    let (_, query) = fragment.split_once('?').unwrap_or_default();
    let names = query.split('&').filter_map(|pair| pair.split('=').next());
    !names.filter_map(Key::named).any(Key::decides_run)
}

impl Draft {
    /// Takes the setup on which a visit opens.
    pub fn open(&mut self) {
        OPENING.iter().for_each(|(key, text)| self.set(*key, *text));
    }

    /// Returns true if what decides the run is as a visit opens: then it is nobody's own.
    pub fn is_as_opened(&self) -> bool {
        let mut opened = Self::default();
        opened.open();
        self.only(Key::decides_run) == opened.only(Key::decides_run)
    }
}

#[cfg(test)]
mod tests {
    use vramscope_engine::verdict::Verdict;

    use super::*;
    use crate::worker::run::Subject;

    #[test]
    fn only_a_visit_without_a_setup_is_opened_on_one() {
        for fragment in ["", "#/", "#/course?row=9.2", "#/?lang=zh-CN", "#/recommend?margin=10"] {
            assert!(is_open(fragment), "{fragment}");
        }
        // Links say what they mean, also where it is the default.
        for fragment in [
            "#/?model=llava-1.5-7b",
            "#/?batch=1",
            "#/?config=e30&lang=en",
            "#/?world=1",
        ] {
            assert!(!is_open(fragment), "{fragment}");
        }
    }

    #[test]
    fn a_visit_opens_on_a_setup_that_fits() {
        let mut draft = Draft::default();
        draft.open();
        let subject = Subject::read(&draft).expect("it is a setup");
        let ran = subject.run().expect("it runs");
        let card = subject.card(&ran.report).expect("the card is known");
        assert_eq!(card.fit.verdict, Verdict::Fits);
        assert!(draft.is_as_opened());
        draft.set(Setting::Batch, "2");
        assert!(!draft.is_as_opened());
    }
}
