//! Sliding windows of a decoder's layers.

use serde_json::Value;

use super::defaults::DecoderDefaults;
use super::family::DecoderFamily;
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;

/// Sliding windows of a family's layers.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    /// Key that switches windows on, which are off without it; `None` for a family that has no switch.
    pub switch: Option<&'static str>,
    /// Length of the window.
    pub length: WindowLength,
    /// Returns true if a layer slides, where the file has no `layer_types`: `__post_init__` of the configuration class.
    pub slides: fn(&Section, &DecoderDefaults, u64) -> Result<bool, ModelError>,
}

/// Length of a family's window in positions, under `sliding_window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowLength {
    /// The family has no windows, regardless of the file.
    Never,
    /// The family has none, and `layer_types` names other kinds of layers, which it reads itself.
    OtherKinds,
    /// That of the file; none if the key is absent or null.
    Given,
    /// That of the file, or this if the key is absent; none if it is null.
    Or(u64),
}

impl Windows {
    /// Windows of a family that has none.
    pub const NEVER: Self = Self::of_every_layer(WindowLength::Never);

    /// Windows of a family that has none, and whose `layer_types` names other kinds of layers.
    pub const OTHER_KINDS: Self = Self::of_every_layer(WindowLength::OtherKinds);

    /// Windows of one length in all layers.
    pub const fn of_every_layer(length: WindowLength) -> Self {
        Self {
            switch: None,
            length,
            slides: |_, _, _| Ok(true),
        }
    }

    /// Returns true for layers past those that see all positions (`max_window_layers`), as Qwen's do.
    pub fn past_full_layers(s: &Section, defaults: &DecoderDefaults, layer: u64) -> Result<bool, ModelError> {
        let full = s.optional_count("max_window_layers", limits::LAYERS)?;
        Ok(layer >= full.unwrap_or(defaults.max_window_layers))
    }
}

/// Checks that some layers slide where the family has rotary positions in sliding ones only.
pub(crate) fn some_slide(s: &Section) -> Result<(), ModelError> {
    if s.has("sliding_window") && s.value("sliding_window").is_none() {
        return Ok(());
    }
    s.only(
        "layer_types",
        "some of sliding_attention: without any, no layer has positions, which is not simulated",
        |types| {
            let kinds = types.as_array();
            kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind == "sliding_attention"))
        },
    )
}

/// Checks that the window is a number where the mask of sliding layers is always made.
pub(crate) fn slides_with_a_number(s: &Section) -> Result<(), ModelError> {
    if s.has("sliding_window") && s.value("sliding_window").is_none() {
        let allowed = "a number, since the mask of sliding layers is always made";
        return Err(s.wrong("sliding_window", &Value::Null, allowed));
    }
    Ok(())
}

/// Reads each layer's sliding window, from `layer_types` or from the family's rule.
pub(super) fn read(
    s: &Section,
    family: &DecoderFamily,
    layers: u64,
    defaults: &DecoderDefaults,
) -> Result<Vec<Option<u64>>, ModelError> {
    if family.windows.length == WindowLength::OtherKinds {
        return Ok(vec![None; layers as usize]);
    }
    // `validate_layer_type` checks every configuration that holds the list.
    let stated = slides_by_layer(s, layers)?;
    let Some(window) = length(s, &family.windows)? else {
        return Ok(vec![None; layers as usize]);
    };
    let slides = match stated {
        Some(slides) if !family.has_one_mask() => slides,
        _ => (0..layers)
            .map(|layer| (family.windows.slides)(s, defaults, layer))
            .collect::<Result<_, _>>()?,
    };
    Ok(slides.into_iter().map(|slides| slides.then_some(window)).collect())
}

/// Length of the window in positions, if the family has one and it is switched on.
fn length(s: &Section, windows: &Windows) -> Result<Option<u64>, ModelError> {
    if let Some(switch) = windows.switch
        && !s.flag(switch, false)?
    {
        // Some configurations that are switched off hold 0.
        s.optional_count("sliding_window", limits::POSITIONS)?;
        return Ok(None);
    }
    let given = s.optional_size("sliding_window", limits::POSITIONS)?;
    Ok(match windows.length {
        WindowLength::Never | WindowLength::OtherKinds => None,
        WindowLength::Or(absent) if !s.has("sliding_window") => Some(absent),
        WindowLength::Given | WindowLength::Or(_) => given,
    })
}

/// Reads which layers slide, from `layer_types`; `None` if the file has none.
pub(crate) fn slides_by_layer(s: &Section, layers: u64) -> Result<Option<Vec<bool>>, ModelError> {
    let types = s.value("layer_types");
    types.map(|types| from_types(s, types, layers)).transpose()
}

fn from_types(s: &Section, types: &Value, layers: u64) -> Result<Vec<bool>, ModelError> {
    let allowed = format!("{layers} entries, each \"sliding_attention\" or \"full_attention\"");
    let wrong = || s.wrong("layer_types", types, &allowed);
    let list = types
        .as_array()
        .filter(|list| list.len() as u64 == layers)
        .ok_or_else(wrong)?;
    list.iter()
        .map(|kind| match kind.as_str() {
            Some("sliding_attention") => Ok(true),
            Some("full_attention") => Ok(false),
            _ => Err(wrong()),
        })
        .collect()
}
