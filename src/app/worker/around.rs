//! Answers what a kept run takes before and beside its steps.

use serde::{Deserialize, Serialize};
use vramscope_engine::report::Around;
use vramscope_engine::simulate::{Beside, SimulateError, around};
use vramscope_engine::verdict::Verdict;
use vramscope_time::Feed;

use super::coded::Coded;
use super::protocol::{Answer, Ask};
use super::run::Subject;
use super::slices::Kept;

/// Memory before and beside the steps of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AroundView {
    /// Lines of the card and of the host.
    #[serde(with = "as_json")]
    pub around: Around,
    /// Verdict on each line of the card; none without a card.
    pub verdicts: Vec<Verdict>,
    /// Processes on the host, one for each GPU.
    pub processes: u64,
}

/// JSON inside the message: messages have no names of fields, and some fields are flattened in the report's JSON.
mod as_json {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(value).map_err(S::Error::custom)?;
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        serde_json::from_str(&text).map_err(D::Error::custom)
    }
}

/// Answers [`Ask::Around`]; no answer for a run that does not train, or whose surroundings are refused.
pub fn answer(kept: &Kept, ask: &Ask) -> Option<Answer> {
    let Ask::Around { data, .. } = ask else { return None };
    let subject = kept.subject.as_ref().filter(|_| kept.ran.pass.is_none())?;
    let workers = Feed::read(data).map_or(0, |feed| feed.workers());
    let around = of(kept, subject, workers).ok()?;
    let processes = subject.gpus();
    let judged = |room| around.card.iter().map(move |line| line.fit(room, processes).verdict);
    let verdicts = subject.room().map(|room| judged(room).collect()).unwrap_or_default();
    Some(Answer::Around(Coded::of(&AroundView {
        around: around.clone(),
        verdicts,
        processes,
    })))
}

/// Simulates what surrounds the steps of a run.
///
/// # Errors
/// Those of [`around`].
pub fn of(kept: &Kept, subject: &Subject, workers: u64) -> Result<Around, SimulateError> {
    let (model, setup) = (&subject.model, &subject.reading.setup);
    let beside = Beside::of(&kept.ran.report, model, subject.reading.parallel.as_ref(), workers);
    around(model, setup, subject.gpu(), beside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Draft, Key};
    use vramscope_engine::report::HostUse;

    #[test]
    fn a_run_is_answered_with_a_verdict_for_each_line_of_the_card() {
        let mut draft = Draft::default();
        draft.set(Key::Model, "gpt2");
        let subject = Subject::read(&draft).expect("gpt2 is in the catalogue");
        let ran = subject.run().expect("it runs");
        let kept = Kept {
            id: 7,
            subject: Some(subject),
            recorded: None,
            ran,
            card: None,
        };
        let data = "decode=9,workers=2".to_owned();
        let Some(Answer::Around(answer)) = answer(&kept, &Ask::Around { run: 7, data }) else {
            panic!("no answer");
        };
        let view = answer.open().expect("it is what was sent");
        assert_eq!(view.verdicts.len(), view.around.card.len());
        assert!(!view.around.card.is_empty() && view.processes == 1);
        let uses = |what| view.around.host.iter().any(|line| line.what == what);
        assert!(uses(HostUse::Workers) && uses(HostUse::Pinned));
    }
}
