//! Answers to the rows of a file, on all threads, told in the rows' order.

use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;

use crate::failure::Failure;
use crate::input::cases::{Cases, Row};

/// A row and its answer, once it is known.
type Promised<A> = Receiver<(Row, A)>;

/// Answers each row and tells the answers in order, each as soon as it and those before it are known. Rows are read
/// only a few ahead.
///
/// # Errors
/// When a row cannot be read, after the answers before it; or when one cannot be told.
pub fn in_order<A: Send>(
    rows: Cases,
    answer: impl Fn(&Row) -> A + Sync,
    mut tell: impl FnMut(&Row, A) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let answer = &answer;
    let (promise, promised) = sync_channel::<Result<Promised<A>, Failure>>(2 * rayon::current_num_threads());
    thread::scope(|threads| {
        threads.spawn(move || {
            rayon::in_place_scope(|answers| {
                for row in rows {
                    let (known, told) = channel();
                    let next = row.map(|row| {
                        answers.spawn(move |_| {
                            let answer = answer(&row);
                            // nobody waits for it where an earlier one could not be told
                            let _ = known.send((row, answer));
                        });
                        told
                    });
                    if promise.send(next).is_err() {
                        break;
                    }
                }
            });
        });
        for next in promised {
            let Ok((row, answer)) = next?.recv() else { break };
            tell(&row, answer)?;
        }
        Ok(())
    })
}
