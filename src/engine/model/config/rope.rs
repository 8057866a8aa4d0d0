//! Configuration of rotary position embeddings.

use super::section::Section;
use crate::model::ModelError;

/// Scaling of rotary frequencies (`rope_type` of transformers' `modeling_rope_utils`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RopeKind {
    /// Unscaled.
    Default,
    /// Positions divided by a factor.
    Linear,
    /// NTK-aware, recomputed for longer sequences.
    Dynamic,
    /// YaRN.
    Yarn,
    /// Phi-3's two factor lists.
    LongRope,
    /// Llama 3.1's piecewise scaling.
    Llama3,
    /// A kind without a name here; the tensors of a step do not depend on it.
    Other,
}

/// Rotary position embedding of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Scaling of frequencies.
    pub kind: RopeKind,
    /// Base wavelength.
    pub theta: f64,
    /// Share of each head's elements that is rotated.
    pub partial_rotary_factor: f64,
    /// Multimodal rope (Qwen-VL): frequencies for time, height and width.
    pub mrope_section: Option<Vec<u64>>,
    /// True if multimodal rope's frequencies alternate (Qwen3-VL) instead of following each other.
    pub mrope_interleaved: bool,
}

impl Rope {
    /// Returns true if the frequencies depend on the length.
    pub fn is_dynamic(&self) -> bool {
        self.kind == RopeKind::Dynamic
    }

    /// Elements of a head of `head_dim` that are rotated.
    pub fn rotated(&self, head_dim: u64) -> u64 {
        (head_dim as f64 * self.partial_rotary_factor) as u64
    }

    /// Reads `rope_parameters`, or the older `rope_scaling` with `rope_theta` beside it; the base `theta` and the
    /// rotated share `partial` are defaults.
    ///
    /// Source: `RotaryEmbeddingConfigMixin.convert_rope_params_to_dict`.
    pub(crate) fn read(section: &Section, theta: f64, partial: f64) -> Result<Self, ModelError> {
        let table = match section.optional_nested("rope_scaling", "rotary embedding")? {
            Some(table) => Some(table),
            None => section.optional_nested("rope_parameters", "rotary embedding")?,
        };
        // Gemma 3 keeps one table per layer type; that of the global layers stands for both.
        let table = match table {
            Some(t) => t.optional_nested("full_attention", "rotary embedding")?.or(Some(t)),
            None => None,
        };
        let table = table.unwrap_or(*section);
        let number = |key: &str, default: f64| -> Result<f64, ModelError> {
            Ok(table
                .optional_number(key)?
                .or(section.optional_number(key)?)
                .unwrap_or(default))
        };
        let name = table
            .optional_text("rope_type")?
            .or(table.optional_text("type")?)
            .unwrap_or("default");
        Ok(Self {
            kind: RopeKind::named(name),
            theta: number("rope_theta", theta)?,
            partial_rotary_factor: number("partial_rotary_factor", partial)?,
            mrope_section: table.optional_indices("mrope_section", super::limits::HEAD_DIM)?,
            mrope_interleaved: table.flag("mrope_interleaved", false)?,
        })
    }
}

/// Reads a rotary embedding whose frequencies may not depend on the length, with the default base `theta`.
pub(crate) fn read_static(s: &Section, theta: f64) -> Result<Rope, ModelError> {
    let rope = Rope::read(s, theta, 1.0)?;
    if !matches!(rope.kind, RopeKind::Dynamic | RopeKind::LongRope) {
        return Ok(rope);
    }
    let key = match s.value("rope_scaling") {
        Some(_) => "rope_scaling",
        None => "rope_parameters",
    };
    let given = s.value(key).cloned().unwrap_or_default();
    Err(s.wrong(key, &given, "a kind whose frequencies do not depend on the length"))
}

/// Returns `rope_parameters`, if there are some, for a class whose frequencies are not scaled and that does not read the
/// older `rope_scaling`.
pub(crate) fn unscaled_table<'a>(s: &Section<'a>) -> Result<Option<Section<'a>>, ModelError> {
    if let Some(given) = s.value("rope_scaling") {
        return Err(s.wrong("rope_scaling", given, "none: write `rope_parameters` instead"));
    }
    let table = s.optional_nested("rope_parameters", "rotary embedding")?;
    let kind = table.and_then(|table| table.value("rope_type"));
    match kind.filter(|kind| **kind != "default") {
        Some(kind) => Err(s.wrong("rope_parameters.rope_type", kind, "\"default\"")),
        None => Ok(table),
    }
}

impl RopeKind {
    fn named(name: &str) -> Self {
        match name {
            "default" | "mrope" => Self::Default,
            "linear" => Self::Linear,
            "dynamic" => Self::Dynamic,
            "yarn" => Self::Yarn,
            "longrope" | "su" => Self::LongRope,
            "llama3" => Self::Llama3,
            _ => Self::Other,
        }
    }
}
