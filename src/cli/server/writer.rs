//! Writes records in a single task. Records that arrive while the disk is busy are committed in the next transaction
//! together, so that many share one sync; each is acknowledged only after its commit.

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::metrics::Metrics;
use super::store::{Inserted, NewRecord, Store, StoreError};

type InsertResult = Result<Inserted, StoreError>;

struct Job {
    record: NewRecord,
    answer: oneshot::Sender<InsertResult>,
}

/// Handle to the task that writes.
#[derive(Debug, Clone)]
pub struct Writer(mpsc::Sender<Job>);

/// Largest number of records per transaction.
const BATCH_SIZES: usize = 256;

impl Writer {
    /// Starts the task. It ends once all [`Writer`]s are dropped and their records are written.
    pub fn start(store: Store, metrics: Metrics) -> (Self, JoinHandle<()>) {
        let (sender, mut jobs) = mpsc::channel(BATCH_SIZES);
        let task = tokio::spawn(async move {
            let mut waiting = Vec::with_capacity(BATCH_SIZES);
            while jobs.recv_many(&mut waiting, BATCH_SIZES).await > 0 {
                write(&store, &metrics, std::mem::take(&mut waiting)).await;
            }
        });
        (Self(sender), task)
    }

    /// Stores a record; when it returns the record is on disk.
    ///
    /// # Errors
    /// If the database is full or does not respond.
    pub async fn store(&self, record: NewRecord) -> InsertResult {
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
                // The client may have disconnected; the record is stored nevertheless.
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
