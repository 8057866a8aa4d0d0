//! Controls bound to a key of the store, each with its error message beside it.

mod choice;
mod combobox;
mod control;
mod field;
mod files;
mod help;
mod intake;
mod launch_files;
mod number;
mod prefetch;
mod progress;
mod say;
mod switch;
mod ways;

pub use choice::{Segments, Select};
pub use combobox::{ComboOption, Combobox, TakesOther};
pub use control::{Control, choices};
pub use field::{ErrorText, Field, control_id, described_by, error_of};
pub use files::{OpenFiles, dropped, read_text};
pub use help::{Help, HelpButton, keep_help_aside};
pub use intake::Intake;
pub use launch_files::{LaunchButton, read_launch};
pub use number::{Entry, Number, stepped};
pub use prefetch::is_typing;
pub use progress::ProgressLine;
pub use say::{SayChoice, SayNumber};
pub use switch::Switch;
pub use ways::{WaysOut, take_way};
