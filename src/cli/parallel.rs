//! Answers the rows of a file on all threads, and outputs the answers in the order of the rows.

use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;

use crate::failure::Failure;
use crate::input::cases::{Cases, Row};

/// Receives a row and its answer, once a thread has computed it.
type Pending<A> = Receiver<(Row, A)>;

/// Answers each row and passes the answers on in order, each as soon as all earlier ones are known. Only a few rows are
/// read ahead.
///
/// # Errors
/// If a row cannot be read, after the answers before it; or if an answer cannot be passed on.
pub fn map_ordered<A: Send>(
    rows: Cases,
    answer: impl Fn(&Row) -> A + Sync,
    mut emit: impl FnMut(&Row, A) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let answer = &answer;
    // The channel of pending answers has the order of the rows, so their receiver waits for each in turn. Its bound is
    // what keeps a file of a million rows from being read into memory ahead of the answers.
    let (pending_tx, pending_rx) = sync_channel::<Result<Pending<A>, Failure>>(2 * rayon::current_num_threads());
    thread::scope(|threads| {
        threads.spawn(move || {
            rayon::in_place_scope(|answers| {
                for row in rows {
                    let (answer_tx, answer_rx) = channel();
                    let next = row.map(|row| {
                        answers.spawn(move |_| {
                            let answer = answer(&row);
                            // The receiver is gone if an earlier answer could not be passed on.
                            let _ = answer_tx.send((row, answer));
                        });
                        answer_rx
                    });
                    if pending_tx.send(next).is_err() {
                        break;
                    }
                }
            });
        });
        for next in pending_rx {
            let Ok((row, answer)) = next?.recv() else { break };
            emit(&row, answer)?;
        }
        Ok(())
    })
}
