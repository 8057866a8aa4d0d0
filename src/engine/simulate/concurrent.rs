//! Records and replays a run, concurrently if there is a second thread.

use super::replay::{Replay, replay};
use super::steps::Recording;
use super::{SimulateError, record_checked};
use crate::tape::Gpu;
use crate::{Model, Setup};

/// Records a run on one GPU, and replays it.
///
/// # Errors
/// When the setup does not fit the model, or the run itself would fail.
pub(super) fn record_and_replay(model: &Model, setup: &Setup, gpu: Gpu) -> Result<(Recording, Replay), SimulateError> {
    #[cfg(not(target_family = "wasm"))]
    if at_once::pays() {
        return at_once::record_and_replay(model, setup, gpu);
    }
    let recording = record_checked(model, setup, gpu)?;
    let replay = replay(&recording, &Default::default())?;
    Ok((recording, replay))
}

/// Concurrent recording and replay, on two threads.
#[cfg(not(target_family = "wasm"))]
mod at_once {
    use std::sync::OnceLock;
    use std::sync::mpsc::{Receiver, TryRecvError, channel};

    use super::super::check::check;
    use super::super::process_replay::ProcessReplay;
    use super::super::repeated::Repeated;
    use super::super::replay::{joined, replay_used};
    use super::super::unrolled::record_on;
    use super::*;
    use crate::allocator::Options;
    use crate::tape::log::ROOM;
    use crate::tape::{Tape, Then, Written};

    /// Returns true if there is a thread to spare; the threads of a pool have runs of their own.
    pub fn pays() -> bool {
        rayon::current_thread_index().is_none() && rayon::current_num_threads() > 1
    }

    /// Replays the first step while another thread records it, and the steps after it while that thread replays the
    /// large pool in other orders of segments.
    ///
    /// # Panics
    /// When recording panics.
    pub fn record_and_replay(model: &Model, setup: &Setup, gpu: Gpu) -> Result<(Recording, Replay), SimulateError> {
        check(model, setup)?;
        let options = Options::default();
        let recorded = OnceLock::new();
        let (to, written) = channel();
        let record = || {
            let tape = Tape::roomy(gpu);
            tape.follow(to.clone());
            let _close = CloseOnDrop(&tape);
            let recording = recorded.get_or_init(|| record_on(model, setup, &tape, None));
            // Events that were not sent can be read from the recording now.
            drop(to);
            match &recording.failure {
                Some(failure) => Err(SimulateError::Fails(failure.clone())),
                None => Ok(replay_used(recording, &options)?),
            }
        };
        let play = || {
            let mut fresh = ProcessReplay::unknown(&options);
            // Events of the first step that the steps after it repeat, once the model is made.
            let mut repeated: Option<Repeated> = None;
            while let Some(Written { requests, events, then }) = next(&written) {
                fresh.receive(requests, &events)?;
                if let Some(repeated) = &mut repeated {
                    repeated.receive(&events);
                }
                match then {
                    Then::More => {}
                    Then::Reached(mark) => {
                        fresh.reach(mark);
                        repeated
                            .get_or_insert_with(|| Repeated::with_room(2 * ROOM))
                            .reach(mark);
                    }
                    Then::Rest(rest) => {
                        let repeated = repeated.take().unwrap_or_default();
                        let steady = repeated.step(&rest.updates[1], &rest.zero_grad, rest.replaced);
                        return fresh.finish_received(&rest, &steady).map(Some);
                    }
                }
            }
            recorded.get().map(|recording| fresh.finish(recording)).transpose()
        };
        let mut used = None;
        let fresh = rayon::in_place_scope(|scope| {
            scope.spawn(|_| used = Some(record()));
            play()
        });
        let used = used.expect("it was recorded")?;
        let recording = recorded.into_inner().expect("it was recorded");
        let fresh = fresh?.expect("it was recorded");
        Ok((recording, joined(fresh, used)))
    }

    /// Closes a tape's channel when its recording panics: such a tape may stay alive, and the other thread would wait
    /// for ever.
    struct CloseOnDrop<'a>(&'a Tape);

    impl Drop for CloseOnDrop<'_> {
        fn drop(&mut self) {
            self.0.unfollow();
        }
    }

    /// Receives the next events, if there are any. They come soon, and a virtual machine may take a millisecond to wake
    /// a sleeping thread, so this spins for a while first.
    fn next(written: &Receiver<Written>) -> Option<Written> {
        const LOOKS: usize = 10_000;
        for _ in 0..LOOKS {
            match written.try_recv() {
                Ok(part) => return Some(part),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => std::thread::yield_now(),
            }
        }
        written.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Case;
    use crate::allocator::Options;

    /// Several micro-batches, states that every update makes anew, gradients that stay, a loss that is recomputed,
    /// vision in hundreds of segments.
    const CASES: [&str; 9] = [
        r#"{"model":"gpt2","batch":2,"seq":512}"#,
        r#"{"model":"gpt2","batch":1,"seq":256,"accum":3,"clip":true,"precision":"amp-fp16"}"#,
        r#"{"model":"gpt2","batch":1,"seq":256,"accum":2,"zero_grad":"to_zero","optim":"adamw_loop"}"#,
        r#"{"model":"qwen2.5-0.5b","batch":1,"seq":700,"optim":"adafactor","ckpt":"full"}"#,
        r#"{"model":"qwen2.5-0.5b","batch":2,"seq":300,"optim":"adafactor_torch","precision":"amp-bf16"}"#,
        r#"{"model":"qwen2.5-0.5b","batch":2,"seq":300,"optim":"adagrad","precision":"amp-bf16"}"#,
        r#"{"model":"llava-1.5-7b","batch":1,"seq":1024,"freeze":"lora","rank":8,"lora_dropout":0.1}"#,
        r#"{"model":"qwen2.5-vl-3b","batch":1,"seq":1500,"images":2,"grid":[36,44]}"#,
        r#"{"model":"videomae-base","batch":2,"frames":16,"image":224,"precision":"amp-fp16"}"#,
    ];

    #[test]
    fn concurrent_replay_equals_a_replay_afterwards() {
        for text in CASES {
            let case = Case::from_json(text).unwrap().unwrap();
            let model = Model::from_case(&case).unwrap();
            let (recording, replayed) = at_once::record_and_replay(&model, &case.setup, Gpu::H200).unwrap();
            let alone = record_checked(&model, &case.setup, Gpu::H200).unwrap();
            assert_eq!(recording.first.events, alone.first.events, "{text}");
            assert_eq!(replayed, replay(&alone, &Options::default()).unwrap(), "{text}");
        }
    }

    #[test]
    fn a_failure_is_reported_as_without_a_second_thread() {
        let case = Case::from_json(r#"{"model":"gpt2","batch":1,"seq":64,"freeze":"all-but-connector"}"#);
        let case = case.unwrap().unwrap();
        let model = Model::from_case(&case).unwrap();
        let told = |answer: Result<(), SimulateError>| answer.unwrap_err();
        let at_once = at_once::record_and_replay(&model, &case.setup, Gpu::H200).map(|_| ());
        let after = record_checked(&model, &case.setup, Gpu::H200).map(|_| ());
        assert_eq!(told(at_once), told(after));
    }
}
