//! Compares two setups tensor by tensor, one simulation a slice. The code has a chunk of its own.

use vramscope_engine::Report;
use vramscope_engine::report::Difference;

use super::coded::Coded;
use super::protocol::{Answer, Refusal};
use super::run::Subject;
use super::slices::Parts;
use super::view::{Compared, Summary};
use crate::state::Draft;

/// Starts the comparison of two setups.
pub type Compare = fn(&[Draft; 2]) -> Box<dyn Parts>;

/// Compares two setups. The caller's part of the program contains the code.
pub fn difference(both: &[Draft; 2]) -> Box<dyn Parts> {
    Box::new(DifferenceWork {
        left: both.iter().rev().cloned().collect(),
        done: Vec::new(),
    })
}

struct DifferenceWork {
    /// Setups to simulate, the first one last.
    left: Vec<Draft>,
    done: Vec<Result<(Report, Summary), Refusal>>,
}

impl Parts for DifferenceWork {
    fn left(&self) -> u32 {
        self.left.len() as u32
    }

    /// Answers once both are simulated.
    fn next(&mut self) -> Option<Answer> {
        let entries = self.left.pop()?;
        self.done.push(run(&entries));
        let [a, b] = &self.done[..] else { return None };
        let difference = a.as_ref().ok().zip(b.as_ref().ok()).map(|(a, b)| {
            Difference::between([a, b].map(|(report, summary)| {
                let outside = summary.card.as_ref().map_or(&[][..], |card| &card.fit.outside);
                (report, outside)
            }))
        });
        let side = |of: &Result<(Report, Summary), Refusal>| match of {
            Ok((_, summary)) => Ok(summary.clone()),
            Err(why) => Err(why.clone()),
        };
        Some(Answer::Difference(Coded::of(&Compared {
            sides: [side(a), side(b)],
            difference,
        })))
    }
}

fn run(entries: &Draft) -> Result<(Report, Summary), Refusal> {
    let subject = Subject::read(entries)?;
    let report = subject.run()?.report;
    let summary = Summary::of(&report, subject.card(&report));
    Ok((report, summary))
}

#[cfg(test)]
mod tests {
    use vramscope_engine::report::difference::more;
    use vramscope_engine::setup::Setting;
    use vramscope_engine::tape::Kind;

    use super::*;
    use crate::state::Key;

    fn compared(model: &str, changes: &[(Key, &str)]) -> Compared {
        let mut a = Draft::default();
        a.set(Key::Model, model);
        a.set(Setting::Seq, "1024");
        let mut b = a.clone();
        changes.iter().for_each(|(key, text)| b.set(*key, *text));
        let mut work = difference(&[a, b]);
        let mut last = None;
        while work.left() > 0 {
            last = work.next();
        }
        match last {
            Some(Answer::Difference(answer)) => answer.open().expect("the program's own bytes"),
            other => panic!("{other:?}"),
        }
    }

    /// The differences of tensors add up to those of their kind, and the parts to what each needs.
    fn adds_up(of: &Compared) -> &Difference {
        let difference = of.difference.as_ref().expect("both run");
        let [a, b] = of.sides.each_ref().map(|side| side.as_ref().expect("it runs"));
        assert_eq!(difference.needed, [a.needed(), b.needed()]);
        assert_eq!(difference.allocated, [a, b].map(|side| side.figures.peak_allocated));
        let parts: i64 = difference.parts.iter().map(|(_, bytes)| more(*bytes)).sum();
        assert_eq!(parts, difference.more());
        for kind in Kind::ALL {
            let part = difference
                .parts
                .iter()
                .find(|(part, _)| *part == vramscope_engine::report::Part::Live(kind));
            let tensors: i64 = difference.of_kind(kind).map(|tensor| tensor.more()).sum();
            assert_eq!(tensors, part.map_or(0, |(_, bytes)| more(*bytes)), "{kind:?}");
        }
        difference
    }

    #[test]
    fn differences_add_up_to_the_byte() {
        let batch = compared("gpt2", &[(Setting::Batch.into(), "2")]);
        let difference = adds_up(&batch);
        assert!(difference.more() > 0);
        // States are the same tensors; their blocks differ by what the allocator leaves unsplit.
        assert!(difference.of_kind(Kind::OptimizerState).all(|tensor| {
            let [a, b] = tensor.held.each_ref().map(|held| held.as_ref().map(|held| held.count));
            a == b
        }));
        let lora = compared(
            "qwen2.5-0.5b",
            &[
                (Setting::Freeze.into(), "lora"),
                (Setting::Optim.into(), "sgd"),
                (Key::Gpu, "RTX 4090"),
            ],
        );
        let difference = adds_up(&lora);
        assert!(
            difference.tensors.iter().any(|tensor| tensor.held[0].is_none()),
            "adapters are B's alone"
        );
        assert!(difference.of_kind(Kind::OptimizerState).all(|tensor| tensor.more() < 0));
        let alike = compared("gpt2", &[]);
        assert_eq!((adds_up(&alike).more(), adds_up(&alike).tensors.len()), (0, 0));
    }

    #[test]
    fn a_setup_that_does_not_run_says_why() {
        let refused = compared("gpt2", &[(Setting::Batch.into(), "0")]);
        assert!(refused.sides[0].is_ok() && refused.sides[1].is_err() && refused.difference.is_none());
    }
}
