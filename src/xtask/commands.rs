//! One function for each command.

mod bench_wasm;
mod lint;
mod serve;
mod shots;
mod table;
mod test;

pub use bench_wasm::bench_wasm;
pub use lint::lint;
pub use serve::serve;
pub use shots::shots;
pub use table::table;
pub use test::test;

use crate::process::{program, run};
use crate::{Failure, tools};

/// Builds the page into `dist/`, as it is published.
///
/// # Errors
/// When a tool is missing and cannot be installed, or the build fails.
pub fn build() -> Result<(), Failure> {
    tools::for_page()?;
    // trunk 0.21 takes NO_COLOR for a flag of its own and stops at any value but true or false.
    run(program("trunk")
        .args(["build", "--offline", "--skip-version-check"])
        .env_remove("NO_COLOR"))
}
