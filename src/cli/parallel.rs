//! Answers the rows of a file on all threads, and outputs the answers in the order of the rows.

use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;

use crate::failure::Failure;
use crate::input::cases::{Cases, Row};

/// Receiver of a row and its answer, once it is known.
type Promised<A> = Receiver<(Row, A)>;

/// Answers each row and passes the answers on in order, each as soon as all earlier ones are known. Only a few rows are
/// read ahead.
///
/// # Errors
/// If a row cannot be read, after the answers before it; or if an answer cannot be passed on.
pub fn map_ordered<A: Send>(
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
                            // The receiver is gone if an earlier answer could not be passed on.
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
