//! Changes of a setup that may end a refusal, and refusals whose changes are not tried yet.

use std::borrow::Cow;

use super::SimulateError;
use super::change::Change;
use crate::setup::Parallel;
use crate::{Model, Setup};

/// A change that may end a refusal.
#[derive(Debug, Clone, Copy)]
pub struct WayOut {
    set: &'static [(&'static str, &'static str)],
    leave: &'static [&'static str],
    change: fn(&mut Setup, &mut Parallel),
}

impl WayOut {
    /// A way out that sets these settings, or leaves those out.
    pub(super) const fn new(
        set: &'static [(&'static str, &'static str)],
        leave: &'static [&'static str],
        change: fn(&mut Setup, &mut Parallel),
    ) -> Self {
        Self { set, leave, change }
    }

    /// What to change.
    #[must_use]
    pub fn change(&self) -> Change {
        if self.set.is_empty() {
            return Change::LeaveOut(self.leave.iter().copied().map(Cow::Borrowed).collect());
        }
        let each = self.set.iter();
        Change::Set(
            each.map(|(name, value)| (Cow::Borrowed(*name), Cow::Borrowed(*value)))
                .collect(),
        )
    }

    /// The setup with the change.
    #[must_use]
    pub fn of(&self, setup: &Setup, parallel: &Parallel) -> (Setup, Parallel) {
        let (mut setup, mut parallel) = (setup.clone(), *parallel);
        (self.change)(&mut setup, &mut parallel);
        (setup, parallel)
    }

    /// True if the other changes the same, and more.
    fn is_part_of(&self, other: &Self) -> bool {
        let [sets, leaves] = [
            self.set.iter().all(|one| other.set.contains(one)),
            self.leave.iter().all(|one| other.leave.contains(one)),
        ];
        sets && leaves
    }
}

/// What the checks of a setup refuse.
pub(super) enum Refused {
    /// For a reason that says by itself what to do.
    Plainly(SimulateError),
    /// Since it is not simulated; the ways out are not tried yet.
    NotSimulated {
        /// Setting and value given.
        given: String,
        /// Changes that may end it.
        ways: &'static [WayOut],
    },
}

impl From<SimulateError> for Refused {
    fn from(why: SimulateError) -> Self {
        Self::Plainly(why)
    }
}

impl Refused {
    /// The refusal of a setup on one GPU, with those of its ways out after which the setup `answers`.
    pub fn into_error(self, model: &Model, setup: &Setup, answers: impl Fn(&Setup) -> bool) -> SimulateError {
        match self {
            Self::Plainly(why) => why,
            Self::NotSimulated { given, ways } => {
                let ways = tried(ways, (setup, &Parallel::default()), |setup, _| answers(setup));
                SimulateError::NotSimulated {
                    model: model.name.clone(),
                    given,
                    ways: ways.iter().map(WayOut::change).collect(),
                }
            }
        }
    }
}

/// Those of some ways out after which the setup answers.
pub(super) fn tried(
    candidates: &[WayOut],
    (setup, parallel): (&Setup, &Parallel),
    answers: impl Fn(&Setup, &Parallel) -> bool,
) -> Vec<WayOut> {
    let mut out: Vec<WayOut> = Vec::new();
    for way in candidates {
        let (setup, parallel) = way.of(setup, parallel);
        let says_more = out.iter().any(|shorter| shorter.is_part_of(way));
        if !says_more && answers(&setup, &parallel) {
            out.push(*way);
        }
    }
    out
}

/// Ways out of a refusal: `set "NAME" = "VALUE", …` or `leave "NAME", …`, each with the change that it stands for.
macro_rules! ways {
    (@ [$($done:expr,)*]) => {
        {
            const ALL: &[$crate::simulate::WayOut] = &[$($done),*];
            ALL
        }
    };
    (@ [$($done:expr,)*] set $($name:literal = $value:literal),+ => $change:expr, $($rest:tt)*) => {
        ways!(@ [$($done,)* $crate::simulate::WayOut::new(&[$(($name, $value)),+], &[], $change),] $($rest)*)
    };
    (@ [$($done:expr,)*] leave $($name:literal),+ => $change:expr, $($rest:tt)*) => {
        ways!(@ [$($done,)* $crate::simulate::WayOut::new(&[], &[$($name),+], $change),] $($rest)*)
    };
    ($($ways:tt)*) => { ways!(@ [] $($ways)*) };
}
pub(super) use ways;
