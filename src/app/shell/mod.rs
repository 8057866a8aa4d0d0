//! Context that every page reads: the address, the theme, the language, preferences, the chosen card, and the crash panel.

mod clipboard;
mod command_line;
mod copy_button;
pub mod fault;
mod file_name;
mod given;
mod history;
pub mod language;
mod my_card;
pub mod preferences;
mod store;
pub mod theme;

pub use clipboard::copy as copy_text;
pub use command_line::CommandLine;
pub use copy_button::CopyButton;
pub use file_name::stem;
pub use given::{Diagnosed, Given, LaunchUse, OpenLaunch, RawInput};
pub use history::History;
pub use my_card::MyCard;
pub use store::{Prefetch, Store};
pub use theme::{CurrentTheme, Theme};
