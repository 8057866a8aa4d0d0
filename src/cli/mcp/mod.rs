//! The server for agents: each tool is a command of this program, run in a process of its own, so that what it prints, and a
//! fault of it, stays apart from the protocol on standard output.

mod child;
mod questions;
mod result;
mod tools;

use rmcp::ServiceExt;
use rmcp::transport::stdio;

use self::tools::Tools;
use crate::failure::Failure;

/// What an agent may have done.
#[derive(Debug, Clone, Copy)]
pub struct Rights {
    /// Ask a hub for models that are not known, and what a dry run needs.
    pub network: bool,
    /// Run commands without a GPU.
    pub dry_runs: bool,
}

/// Answers on standard input and output until the agent closes them.
///
/// # Errors
/// If the protocol's first messages are not exchanged.
pub fn serve(rights: Rights) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::broken)?;
    let served = runtime.block_on(async {
        let service = Tools::new(rights).serve(stdio()).await.map_err(Failure::broken)?;
        service.waiting().await.map_err(Failure::broken)
    });
    // A read of standard input cannot be taken back; whoever closed it waits for this program.
    runtime.shutdown_background();
    served.map(|_| ())
}
