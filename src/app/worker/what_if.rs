use vramscope_engine::plan::{Now, WhatIf};

use super::host::Parts;
use super::protocol::Answer;
use super::run::Subject;
use crate::state::Draft;

/// Single changes, one simulation each. A setup that cannot be read has none.
pub struct WhatIfWork(Option<WhatIf>);

impl WhatIfWork {
    /// Changes of these entries, whose run has the figures of `now`.
    pub fn of(entries: &Draft, now: Now) -> Self {
        let subject = Subject::read(entries).ok();
        Self(subject.map(|subject| {
            let gpu = subject.gpu();
            let room = subject.room();
            WhatIf::new(subject.model, subject.reading.setup, gpu, room, now)
        }))
    }
}

impl Parts for WhatIfWork {
    fn left(&self) -> u32 {
        self.0.as_ref().map_or(0, |changes| changes.len() as u32)
    }

    fn next(&mut self) -> Option<Answer> {
        self.0.as_mut()?.next().map(Answer::Tried)
    }
}
