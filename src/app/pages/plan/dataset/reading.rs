//! Reads a dataset piece by piece, between which the page stays usable.

use std::sync::Arc;

use gloo_file::File;
use gloo_file::futures::read_as_bytes;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::worker::Progress;
use vramscope_dataset::{Dataset, Reader, Unread};

/// Bytes of a piece: the page stands still while one is read.
const PIECE: u64 = 1 << 18;

/// State of the reading.
#[derive(Debug, Clone, Default)]
pub enum State {
    /// Nothing is read yet.
    #[default]
    Reading,
    /// Stopped by the person.
    Stopped,
    /// The file cannot be opened, or its rest cannot.
    Lost,
    /// It tells nothing.
    Unread(Unread),
    /// It is read.
    Read(Arc<Dataset>),
}

/// A dataset that is being read.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// State.
    pub state: RwSignal<State>,
    /// Progress in KiB; `None` if nothing is being read.
    pub progress: RwSignal<Option<Progress>>,
    /// Number of the reading, which a newer one ends.
    newest: StoredValue<u32>,
}

impl Reading {
    /// Reads nothing yet; ends with the calling component.
    pub fn new() -> Self {
        let reading = Self {
            state: RwSignal::default(),
            progress: RwSignal::new(None),
            newest: StoredValue::new(0),
        };
        on_cleanup(move || reading.end());
        reading
    }

    /// Reads a file in place of the last.
    pub fn begin(self, file: File) {
        self.end();
        self.state.set(State::Reading);
        let number = self.newest.get_value();
        spawn_local(async move {
            let found = self.read(&file, number).await;
            if self.is_newest(number) {
                self.progress.set(None);
                self.state.set(found);
            }
        });
    }

    async fn read(self, file: &File, number: u32) -> State {
        let (size, mut at) = (file.size(), 0);
        let mut reader = Reader::new(&file.name());
        while at < size && self.is_newest(number) {
            let end = size.min(at + PIECE);
            let Ok(piece) = read_as_bytes(&file.slice(at, end)).await else {
                return State::Lost;
            };
            reader.feed(&piece);
            at = end;
            let kib = |bytes: u64| (bytes / 1024) as u32;
            let progress = Progress {
                done: kib(at),
                of: kib(size).max(1),
            };
            self.progress.try_set(Some(progress));
        }
        match reader.finish() {
            Ok(found) => State::Read(Arc::new(found)),
            Err(why) => State::Unread(why),
        }
    }

    /// Stops on the person's request.
    pub fn stop(self) {
        self.end();
        self.state.set(State::Stopped);
    }

    fn end(self) {
        self.newest.try_update_value(|newest| *newest += 1);
        self.progress.try_set(None);
    }

    fn is_newest(self, number: u32) -> bool {
        self.newest.try_get_value() == Some(number)
    }
}
