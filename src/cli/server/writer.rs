//! One task writes. What arrives while the disk is busy goes into the next transaction together, so a
//! sync is paid for many records, and each is acknowledged only after it.

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::metrics::Metrics;
use super::store::{Inserted, NewRecord, Store, StoreError};

type Answer = Result<Inserted, StoreError>;

struct Job {
    record: NewRecord,
    answer: oneshot::Sender<Answer>,
}

/// The way to the task that writes.
#[derive(Debug, Clone)]
pub struct Writer(mpsc::Sender<Job>);

/// Records in one transaction at most.
const TOGETHER: usize = 256;

impl Writer {
    /// Starts the task; it ends after its last record when all [`Writer`]s are gone.
    pub fn start(store: Store, metrics: Metrics) -> (Self, JoinHandle<()>) {
        let (sender, mut jobs) = mpsc::channel(TOGETHER);
        let task = tokio::spawn(async move {
            let mut waiting = Vec::with_capacity(TOGETHER);
            while jobs.recv_many(&mut waiting, TOGETHER).await > 0 {
                write(&store, &metrics, std::mem::take(&mut waiting)).await;
            }
        });
        (Self(sender), task)
    }

    /// Stores a record; when this returns it is on the disk.
    ///
    /// # Errors
    /// When the database is full or does not answer.
    pub async fn store(&self, record: NewRecord) -> Answer {
        let stopping = || StoreError::Unavailable("the server is stopping".into());
        let (answer, answered) = oneshot::channel();
        let sent = self.0.send(Job { record, answer }).await;
        sent.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())?
    }
}

async fn write(store: &Store, metrics: &Metrics, jobs: Vec<Job>) {
    let (records, answers): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.record, job.answer)).unzip();
    metrics.committing(records.len());
    match store.insert(&records).await {
        Ok(inserted) => {
            for (answer, inserted) in answers.into_iter().zip(inserted) {
                metrics.stored(&inserted);
                // Whoever sent it may have gone away: it is stored all the same.
                let _ = answer.send(Ok(inserted));
            }
        }
        Err(error) => {
            for answer in answers {
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
}
