//! Writes the page's phrases as one content-hashed file per language.

use vramscope_phrases as phrases;

use super::published::Published;
use crate::{Failure, root};

/// Writes the languages and names them in the page.
pub fn write(page: &mut Published) -> Result<(), Failure> {
    let all = phrases::read(&root().join("src/app/locales")).map_err(Failure::new)?;
    for (place, language) in phrases::LANGUAGES.into_iter().enumerate() {
        let text = phrases::packed(&all, place);
        page.add(&format!("words/{language}.txt"), text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_phrases::{LANGUAGES, Phrase, packed, read};

    #[test]
    fn gaps_are_numbered_in_the_order_of_their_names() {
        let phrase = Phrase {
            subject: "verdict".into(),
            key: "spare".into(),
            gaps: vec!["card".into(), "room".into()],
            texts: ["{{ room }} of {{ card }}.", "{{card}}：{{ room }}", "—"].map(String::from),
        };
        let lines = [0, 1, 2].map(|language| packed(std::slice::from_ref(&phrase), language));
        assert_eq!(lines, ["{1} of {0}.", "{0}：{1}", "—"]);
    }

    #[test]
    fn every_language_has_as_many_lines() {
        let all = read(&root().join("src/app/locales")).expect("the page's phrases");
        for language in 0..LANGUAGES.len() {
            assert_eq!(packed(&all, language).lines().count(), all.len());
        }
    }
}
