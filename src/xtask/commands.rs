//! The commands of `cargo xtask`, one function each.

mod bench_wasm;
mod build;
mod docs;
mod dry_run_tools;
mod gallery;
mod lint;
mod measure;
mod plans;
mod recorder;
mod release;
mod serve;
mod shots;
mod table;
mod test;

pub use bench_wasm::bench_wasm;
pub use build::{Build, WASM_RUSTFLAGS, build};
pub use docs::docs;
pub use dry_run_tools::dry_run_tools;
pub use gallery::{gallery, gallery_folder};
pub use lint::lint;
pub use measure::measure;
pub use plans::plans;
pub use recorder::{agents, recorder, wheel};
pub use release::release;
pub use serve::serve;
pub use shots::shots;
pub use table::table;
pub use test::test;
