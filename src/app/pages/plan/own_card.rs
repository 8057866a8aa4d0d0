//! Button that chooses the GPU that the browser says this machine has.

use leptos::prelude::*;
use vramscope_engine::device::{Device, Found};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::text;
use crate::shell::Store;
use crate::state::Key;

#[wasm_bindgen]
extern "C" {
    /// What WebGL calls the GPU; defined in `src/app/js/boot.js`.
    #[wasm_bindgen(js_namespace = vramscope)]
    fn renderer() -> String;
}

/// The button, and what it found where that is no single card.
#[component]
pub fn OwnCard(said: RwSignal<Option<Said>>) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let ask = move |_| {
        let found = gpu(&renderer()).map(|name| (Device::find(&name), name));
        said.set(match found {
            None => Some(Said::Hidden),
            Some((Err(_), name)) => Some(Said::Unknown(name)),
            Some((Ok(Found { card, others }), _)) => {
                store.set(Key::Gpu, card.name);
                (!others.is_empty()).then_some(Said::Several(card, others))
            }
        });
    };
    view! {
        <button
            type="button"
            class="tool launch-button"
            data-testid="own-card"
            title=text(move || t_string!(i18n, card.own_help).to_owned())
            on:click=ask
        >
            {t!(i18n, card.own)}
        </button>
    }
}

/// What is said of this machine's GPU.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// The browser does not name it.
    Hidden,
    /// No card has the browser's name for it.
    Unknown(String),
    /// Boards of that name: the one that was chosen, and the others.
    Several(&'static Device, Vec<&'static Device>),
}

impl Said {
    /// The sentence.
    pub fn words(&self, i18n: Words) -> String {
        match self {
            Self::Hidden => t_string!(i18n, card.own_hidden).to_owned(),
            Self::Unknown(found) => t_string!(i18n, card.own_unknown, found = found.clone()).to_string(),
            Self::Several(card, others) => {
                let names: Vec<&str> = others.iter().map(|other| other.name).collect();
                t_string!(i18n, card.own_several, card = card.name, others = names.join(", ")).to_string()
            }
        }
    }
}

/// Name of the GPU in what WebGL says of its renderer; `None` where that names none. Chromium's is
/// `ANGLE (maker, name and driver, version)`. Firefox rounds to a known card and says so by `, or similar`: no name at all.
fn gpu(renderer: &str) -> Option<String> {
    let inner = renderer
        .strip_prefix("ANGLE (")
        .and_then(|rest| rest.split_once(", "))
        .map_or(renderer, |(_, rest)| rest);
    if renderer.ends_with(", or similar") {
        return None;
    }
    let name = inner.strip_prefix("ANGLE Metal Renderer: ").unwrap_or(inner);
    let ends = [", ", "/PCIe", " (0x", " Direct3D", " Laptop GPU"];
    let end = ends.iter().filter_map(|end| name.find(end)).min().unwrap_or(name.len());
    // A laptop's card has other figures than the desktop's of the same name.
    let name = match name[end..].starts_with(" Laptop GPU") {
        true => &name[..end + " Laptop GPU".len()],
        false => &name[..end],
    };
    (!name.is_empty() && !name.contains("SwiftShader") && !name.contains("llvmpipe")).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_say_becomes_the_name_of_a_gpu() {
        for (said, name) in [
            (
                "ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 (0x00002684) Direct3D11 vs_5_0 ps_5_0, D3D11)",
                Some("NVIDIA GeForce RTX 4090"),
            ),
            (
                "ANGLE (NVIDIA Corporation, NVIDIA GeForce RTX 3090/PCIe/SSE2, OpenGL 4.5.0)",
                Some("NVIDIA GeForce RTX 3090"),
            ),
            ("NVIDIA GeForce RTX 3090/PCIe/SSE2", Some("NVIDIA GeForce RTX 3090")),
            (
                "ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 Laptop GPU (0x00002757) Direct3D11 vs_5_0 ps_5_0, D3D11)",
                Some("NVIDIA GeForce RTX 4090 Laptop GPU"),
            ),
            (
                "ANGLE (Apple, ANGLE Metal Renderer: Apple M3 Max, Unspecified Version)",
                Some("Apple M3 Max"),
            ),
            ("NVIDIA GeForce GTX 980, or similar", None),
            (
                "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)",
                None,
            ),
            ("", None),
        ] {
            assert_eq!(gpu(said).as_deref(), name, "{said}");
        }
    }

    #[test]
    fn a_laptop_s_card_is_not_taken_for_the_desktop_s() {
        assert!(Device::find("NVIDIA GeForce RTX 4090 Laptop GPU").is_err());
        assert_eq!(
            Device::find("NVIDIA GeForce RTX 4090").expect("a card").card.name,
            "RTX 4090"
        );
    }
}
