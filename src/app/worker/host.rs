//! Answers questions, a slice at a time. Pure: who calls it decides when the next slice comes.

use vramscope_engine::Report;
use vramscope_engine::report::Instant;
use vramscope_engine::report::derivation::{Derivation, Quantity};

use super::attention::AttentionWork;
use super::export::Export;
use super::protocol::{Answer, Ask, Order, Progress, Refusal, Reply};
use super::run::Subject;
use super::setups::SetupsWork;
use super::slots::Slots;
use super::sweep::SweepWork;
use super::view::{Card, Details, Live, Run};
use super::what_if::WhatIfWork;
use crate::state::{Draft, Task};

/// Questions at work, and the last run.
#[derive(Default)]
pub struct Host {
    jobs: Slots<Job>,
    kept: Option<Kept>,
}

/// The run that questions can be about.
struct Kept {
    id: u32,
    subject: Subject,
    report: Report,
    card: Option<Card>,
}

/// One question at work.
struct Job {
    id: u32,
    progress: Progress,
    work: Work,
}

/// What is left to do for a question.
enum Work {
    /// One answer, for which the host's own run may be needed.
    Whole(Ask),
    /// Many answers, one for each slice.
    Parts(Box<dyn Parts>),
}

/// Work in many slices.
pub trait Parts {
    /// How many answers are left, at most.
    fn left(&self) -> u32;

    /// The next answer: at most a few simulations.
    fn next(&mut self) -> Option<Answer>;
}

impl Work {
    /// What a question takes, and how many answers it has.
    fn of(ask: Ask) -> (Self, u32) {
        let parts: Box<dyn Parts> = match ask {
            Ask::WhatIf { entries, now } => Box::new(WhatIfWork::of(&entries, now)),
            Ask::Setups(all) => Box::new(SetupsWork::of(all)),
            Ask::Attention(draft) => Box::new(AttentionWork::of(&draft)),
            Ask::Sweep(draft) => Box::new(SweepWork::of(&draft)),
            ask => return (Self::Whole(ask), 1),
        };
        let of = parts.left().max(1);
        (Self::Parts(parts), of)
    }
}

impl Host {
    /// Takes an order. What was asked before for the same slot is dropped.
    pub fn take(&mut self, order: Order) {
        match order {
            Order::Ask { id, slot, ask } => {
                let (work, of) = Work::of(ask);
                let progress = Progress { done: 0, of };
                self.jobs.insert(slot, Job { id, progress, work });
            }
            Order::Cancel(slot) => {
                self.jobs.remove(slot);
            }
        }
    }

    /// Whether there is something to do.
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Does one slice of the most urgent work: at most one simulation.
    pub fn step(&mut self) -> Option<Reply> {
        let (slot, mut job) = self.jobs.pop_first()?;
        job.progress.done += 1;
        let answer = match &mut job.work {
            Work::Whole(ask) => self.answer(job.id, ask),
            Work::Parts(parts) => {
                let answer = parts.next();
                // It may end early.
                job.progress.of = job.progress.done + parts.left();
                answer
            }
        };
        let (id, progress) = (job.id, job.progress);
        if !progress.is_complete() {
            self.jobs.insert(slot, job);
        }
        Some(Reply::Answered {
            id,
            slot,
            progress,
            answer: answer.map(Box::new),
        })
    }

    fn answer(&mut self, id: u32, ask: &Ask) -> Option<Answer> {
        match ask {
            Ask::Run(draft) => Some(self.run(id, draft).unwrap_or_else(|why| Answer::Run(Err(why)))),
            Ask::Details { run } => {
                let kept = self.kept(*run)?;
                Some(Answer::Details(Box::new(Details::of(&kept.report))))
            }
            Ask::Live { run, instant } => self.live(*run, *instant).map(Answer::Live),
            // These come in parts.
            Ask::WhatIf { .. } | Ask::Setups(_) | Ask::Attention(_) | Ask::Sweep(_) => None,
            Ask::Export { run, file } => self.export(*run, *file).map(Answer::File),
            Ask::Derive { run, quantity } => self.derive(*run, quantity).map(Answer::Derivation),
        }
    }

    fn run(&mut self, id: u32, draft: &Draft) -> Result<Answer, Refusal> {
        // Its memory is needed for the next one.
        self.kept = None;
        let subject = Subject::read(draft)?;
        if subject.reading.task != Task::Train {
            return subject.inference().map(Answer::Inference);
        }
        let report = subject.report()?;
        let card = subject.card(&report);
        let inputs = subject.inputs(&report);
        let run = Run::of(id, (&report, inputs), card.clone());
        let card = card.ok();
        self.kept = Some(Kept {
            id,
            subject,
            report,
            card,
        });
        Ok(Answer::Run(Ok(Box::new(run))))
    }

    fn live(&self, run: u32, instant: Instant) -> Option<Live> {
        Some(Live::of(&self.kept(run)?.report.timeline, instant))
    }

    fn derive(&self, run: u32, quantity: &Quantity) -> Option<Derivation> {
        let kept = self.kept(run)?;
        kept.subject.derivation(&kept.report, kept.card.as_ref(), quantity)
    }

    fn export(&self, run: u32, file: Export) -> Option<String> {
        let kept = self.kept(run)?;
        Some(file.write(&kept.subject, &kept.report, kept.card.as_ref()))
    }

    fn kept(&self, run: u32) -> Option<&Kept> {
        self.kept.as_ref().filter(|kept| kept.id == run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Key;
    use crate::worker::Slot;
    use vramscope_engine::plan::Now;
    use vramscope_engine::report::StepBytes;
    use vramscope_engine::units::Bytes;

    fn draft(pairs: &[(Key, &str)]) -> Draft {
        let mut draft = Draft::default();
        draft.set(Key::Model, "gpt2");
        for (key, text) in pairs {
            draft.set(*key, *text);
        }
        draft
    }

    fn ask(id: u32, slot: Slot, ask: Ask) -> Order {
        Order::Ask { id, slot, ask }
    }

    /// Ids and answers of all that is left to do.
    fn finish(host: &mut Host) -> Vec<(u32, Option<Answer>)> {
        std::iter::from_fn(|| host.step())
            .map(|reply| match reply {
                Reply::Answered { id, answer, .. } => (id, answer.map(|a| *a)),
                Reply::Fault(what) => panic!("{what}"),
            })
            .collect()
    }

    #[test]
    fn a_newer_question_of_a_slot_takes_the_place_of_the_older() {
        let mut host = Host::default();
        host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
        host.take(ask(2, Slot::Run, Ask::Run(draft(&[(Key::Batch, "2")]))));
        let answers = finish(&mut host);
        let [(2, Some(Answer::Run(Ok(run))))] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert_eq!(run.id, 2);
        assert!(!host.is_busy());
    }

    #[test]
    fn a_cancelled_question_is_not_answered() {
        let mut host = Host::default();
        host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
        host.take(Order::Cancel(Slot::Run));
        assert_eq!(finish(&mut host), []);
    }

    fn progress(reply: Option<Reply>) -> (u32, Progress) {
        match reply {
            Some(Reply::Answered { id, progress, .. }) => (id, progress),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_comes_before_the_rest_of_longer_work_which_says_how_far_it_is() {
        let mut host = Host::default();
        let now = Now {
            reserved: Bytes::ZERO,
            steady: StepBytes::default(),
        };
        let entries = draft(&[(Key::Seq, "64")]);
        host.take(ask(1, Slot::WhatIf, Ask::WhatIf { entries, now }));
        let (id, first) = progress(host.step());
        assert!(id == 1 && first.done == 1 && first.of > 20, "{first:?}");
        host.take(ask(2, Slot::Run, Ask::Run(draft(&[]))));
        assert_eq!(progress(host.step()), (2, Progress { done: 1, of: 1 }));
        let rest: Vec<_> = std::iter::from_fn(|| host.step()).map(|r| progress(Some(r))).collect();
        let counted = (2..=first.of).map(|done| (1, Progress { done, of: first.of }));
        assert!(rest.into_iter().eq(counted));
    }

    #[test]
    fn setups_side_by_side_come_in_order_and_one_that_cannot_run_says_why() {
        let mut host = Host::default();
        let all = vec![draft(&[]), draft(&[(Key::Batch, "0")]), draft(&[(Key::Batch, "2")])];
        host.take(ask(1, Slot::Setups, Ask::Setups(all)));
        let peaks: Vec<_> = finish(&mut host)
            .into_iter()
            .map(|(_, answer)| match answer {
                Some(Answer::Setup(setup)) => setup.map(|s| s.figures.peak_allocated).map_err(|_| "refused"),
                other => panic!("{other:?}"),
            })
            .collect();
        let [Ok(one), Err("refused"), Ok(two)] = peaks[..] else {
            panic!("{peaks:?}")
        };
        assert!(one < two, "two samples hold more than one");
    }

    #[test]
    fn an_instant_is_of_the_run_that_it_names() {
        let mut host = Host::default();
        host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
        host.take(ask(1, Slot::Details, Ask::Details { run: 1 }));
        let Some((_, Some(Answer::Details(details)))) = finish(&mut host).pop() else {
            panic!("gpt2 runs")
        };
        let instant = details.curve.peak;
        host.take(ask(2, Slot::Instant, Ask::Live { run: 1, instant }));
        assert_eq!(finish(&mut host), [(2, Some(Answer::Live(details.at_peak)))]);
        host.take(ask(3, Slot::Run, Ask::Run(draft(&[]))));
        host.take(ask(4, Slot::Instant, Ask::Live { run: 1, instant }));
        assert_eq!(finish(&mut host).pop(), Some((4, None)), "run 1 is no more");
    }

    #[test]
    fn a_number_is_explained_for_the_run_that_it_is_of() {
        let mut host = Host::default();
        host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
        let Some((_, Some(Answer::Run(Ok(run))))) = finish(&mut host).pop() else {
            panic!("gpt2 runs")
        };
        let derive = |run| Ask::Derive {
            run,
            quantity: Quantity::PeakAllocated,
        };
        host.take(ask(2, Slot::Derivation, derive(1)));
        let Some((2, Some(Answer::Derivation(found)))) = finish(&mut host).pop() else {
            panic!("it is explained")
        };
        assert_eq!(found.formula.value(), run.figures.peak_allocated.get());
        host.take(ask(3, Slot::Derivation, derive(9)));
        assert_eq!(finish(&mut host), [(3, None)]);
    }

    #[test]
    fn a_model_that_does_not_train_takes_less() {
        let mut host = Host::default();
        let mut peak = |phase| {
            host.take(ask(
                1,
                Slot::Run,
                Ask::Run(draft(&[(Key::Model, "qwen2.5-0.5b"), (Key::Phase, phase)])),
            ));
            match finish(&mut host).pop() {
                Some((1, Some(Answer::Run(Ok(run))))) => run.figures.peak_allocated,
                Some((1, Some(Answer::Inference(pass)))) => pass.figures.peak_allocated,
                other => panic!("{other:?}"),
            }
        };
        let [train, evaluate, generate] = ["train", "evaluate", "generate"].map(&mut peak);
        assert!(evaluate < train && generate < train);
    }

    #[test]
    fn a_model_that_cannot_be_read_is_refused_in_the_engines_words() {
        let mut host = Host::default();
        host.take(ask(1, Slot::Run, Ask::Run(draft(&[(Key::Model, "gpt9")]))));
        let answers = finish(&mut host);
        let [(1, Some(Answer::Run(Err(Refusal::Model(message)))))] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert!(message.contains("gpt9"), "{message}");
    }

    #[test]
    fn a_run_crosses_over_unchanged() {
        let mut host = Host::default();
        host.take(ask(7, Slot::Run, Ask::Run(draft(&[(Key::Gpu, "RTX 4090")]))));
        host.take(ask(8, Slot::Details, Ask::Details { run: 7 }));
        for reply in std::iter::from_fn(|| host.step()) {
            let bytes = postcard::to_allocvec(&reply).expect("it is plain data");
            assert_eq!(postcard::from_bytes::<Reply>(&bytes).expect("it is read back"), reply);
        }
    }

    #[test]
    fn orders_cross_over_unchanged() {
        let mut entered = draft(&[]);
        for key in Key::ALL {
            entered.set(key, "任意 text");
        }
        for order in [ask(3, Slot::Run, Ask::Run(entered)), Order::Cancel(Slot::Instant)] {
            let bytes = postcard::to_allocvec(&order).expect("it is plain data");
            assert_eq!(postcard::from_bytes::<Order>(&bytes).expect("it is read back"), order);
        }
    }
}
