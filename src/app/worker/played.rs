//! Replays recordings, in a lazily loaded chunk of the program.

mod batches;
mod changes;
#[cfg(target_arch = "wasm32")]
mod inflate;
mod replay;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "wasm32")]
use std::{rc::Rc, sync::Arc};

#[cfg(target_arch = "wasm32")]
use super::recorded::Replay;

/// Unpacks a file.
#[cfg(target_arch = "wasm32")]
pub type Unpack = fn(Arc<Vec<u8>>) -> std::pin::Pin<Box<dyn Future<Output = Rc<dyn Replay>>>>;

/// Functions that replay recordings.
#[derive(Debug, Clone, Copy)]
pub struct Replayer {
    /// Unpacks a file, ready to be replayed.
    #[cfg(target_arch = "wasm32")]
    pub unpack: Unpack,
}

/// Returns the functions of this chunk.
pub fn replayer() -> Replayer {
    Replayer {
        #[cfg(target_arch = "wasm32")]
        unpack: |packed| {
            Box::pin(async { Rc::new(replay::Recorded::open(inflate::unpack(packed).await)) as Rc<dyn Replay> })
        },
    }
}
