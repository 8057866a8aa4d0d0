//! Control of a setting, as its declaration asks for.

use leptos::prelude::*;
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Kind, Setting};

use super::choice::{Segments, Select};
use super::number::{Entry, Number};
use super::switch::Switch;
use crate::state::Key;

/// Control of a setting.
#[component]
pub fn Control(
    /// The setting.
    of: Setting,
    /// Properties of the model, which decide the choices that apply; all apply if there is no model.
    #[prop(optional, into)]
    takes: Option<Signal<Takes>>,
) -> impl IntoView {
    let (declared, key) = (of.declaration(), Key::Setting(of));
    match declared.kind {
        Kind::Count | Kind::OptionalCount => view! {
            <Number key step=declared.step least=declared.start placeholder=declared.example />
        }
        .into_any(),
        Kind::Switch => view! { <Switch key /> }.into_any(),
        // Short enough to stand side by side in every language.
        Kind::Choice(_) if of == Setting::Attn => view! { <Segments key /> }.into_any(),
        Kind::Choice(_) | Kind::ModelSwitch => {
            let choices = Signal::derive(move || choices(of, takes.map(|takes| takes.get())));
            view! { <Select key choices /> }.into_any()
        }
        Kind::Grid | Kind::Lengths | Kind::Sizes | Kind::Probability | Kind::Targets | Kind::ParameterNames => {
            view! { <Entry key placeholder=declared.example /> }.into_any()
        }
    }
}

/// Choices of a setting that apply to a model.
pub fn choices(of: Setting, takes: Option<Takes>) -> Vec<&'static str> {
    match (of.declaration().kind, takes) {
        (Kind::Choice(all), Some(takes)) => all.names_that(|needs| needs.met_by(takes)).collect(),
        _ => Key::Setting(of).choices().to_vec(),
    }
}
