//! DeepSpeed's keys of `zero_optimization`, and what a strategy keeps in the memory of the host.

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// What a strategy keeps in the memory of the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Offload {
    /// Nothing.
    #[default]
    None,
    /// Shards, gradients and states: FSDP2's `CPUOffloadPolicy`.
    Shards,
    /// DeepSpeed's `offload_optimizer`: gradients in fp32, weights in fp32, states.
    Optimizer,
    /// DeepSpeed's `offload_optimizer` and, of stage 3, `offload_param`: parameters too.
    OptimizerAndParameters,
}

impl Offload {
    /// All values, by their words in cases.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("false", Self::None),
        ("true", Self::Shards),
        ("optimizer", Self::Optimizer),
        ("optimizer,param", Self::OptimizerAndParameters),
    ];

    /// Word in cases.
    pub fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }

    /// Finds a value by its word.
    pub fn named(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, value)| *value)
    }

    /// Returns true if the host keeps something.
    pub fn is_any(self) -> bool {
        self != Self::None
    }

    /// Returns true if it is one of DeepSpeed's.
    pub const fn is_deepspeeds(self) -> bool {
        matches!(self, Self::Optimizer | Self::OptimizerAndParameters)
    }
}

impl Serialize for Offload {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if !to.is_human_readable() {
            return to.serialize_u8(*self as u8);
        }
        match self {
            Self::None => to.serialize_bool(false),
            Self::Shards => to.serialize_bool(true),
            other => to.serialize_str(other.word()),
        }
    }
}

impl<'de> Deserialize<'de> for Offload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Whether(bool),
            Word(String),
        }
        if !from.is_human_readable() {
            let at = usize::from(u8::deserialize(from)?);
            let known = Self::WORDS.get(at).map(|(_, value)| *value);
            return known.ok_or_else(|| D::Error::custom("no such offload"));
        }
        match Given::deserialize(from)? {
            Given::Whether(false) => Ok(Self::None),
            Given::Whether(true) => Ok(Self::Shards),
            Given::Word(word) => Self::named(&word)
                .ok_or_else(|| D::Error::custom("`offload` is true, \"optimizer\" or \"optimizer,param\"")),
        }
    }
}

/// Whole number of a key: DeepSpeed takes `5e8` for one too.
fn whole(given: &serde_json::Value) -> Option<u64> {
    let float = |value: f64| ((0.0..=1e18).contains(&value) && value.fract() == 0.0).then_some(value as u64);
    given.as_u64().or_else(|| given.as_f64().and_then(float))
}

/// Declares the keys that are simulated, with DeepSpeed's defaults.
macro_rules! keys {
    ($( $(#[$meta:meta])+ $field:ident $(or $alias:literal)?: $type:ident = $default:expr, )+) => {
        /// DeepSpeed's keys of `zero_optimization` (`deepspeed/runtime/zero/config.py` of 0.19.8).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub struct Zero {
            $( $(#[$meta])+ pub $field: $type, )+
        }

        impl Default for Zero {
            fn default() -> Self {
                Self { $( $field: $default, )+ }
            }
        }

        impl Zero {
            /// Reads the fields one after the other, as formats without names have them.
            fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                struct Fields {
                    $( $field: $type, )+
                }
                let fields = Fields::deserialize(from)?;
                Ok(Self { $( $field: fields.$field, )+ })
            }

            /// Sets a key.
            ///
            /// # Errors
            /// When its value is not simulated, or it is none of DeepSpeed's.
            pub fn set(&mut self, key: &str, value: &serde_json::Value) -> Result<(), String> {
                $( if key == stringify!($field) $( || key == $alias )? {
                    self.$field = keys!(@read $type, key, value)?;
                    return Ok(());
                } )+
                fixed(key, value)
            }
        }
    };
    (@read u64, $key:ident, $value:ident) => {
        whole($value).ok_or_else(|| format!("`zero.{}` is {}; it is a whole number", $key, $value))
    };
    (@read bool, $key:ident, $value:ident) => {
        $value.as_bool().ok_or_else(|| format!("`zero.{}` is {}; it is true or false", $key, $value))
    };
    (@read Choice, $key:ident, $value:ident) => {
        match $value {
            serde_json::Value::Null => Ok(None),
            other => other.as_bool().map(Some).ok_or_else(|| format!("`zero.{}` is {}; it is true or false", $key, other)),
        }
    };
}

/// A switch whose default depends on the stage.
type Choice = Option<bool>;

keys! {
    /// Elements of the buffer in which gradients are reduced.
    reduce_bucket_size: u64 = 500_000_000,
    /// Elements that one gather takes, which changes no memory.
    allgather_bucket_size: u64 = 500_000_000,
    /// Reduces while backward goes on; of stage 3 unless set.
    overlap_comm: Choice = None,
    /// Gradients go into a buffer as they are made.
    contiguous_gradients: bool = true,
    /// Gradients are summed for the GPU that keeps them.
    reduce_scatter: bool = true,
    /// Parameters go round the GPUs.
    round_robin_gradients: bool = false,
    /// Elements that are gathered ahead.
    stage3_prefetch_bucket_size or "prefetch_bucket_size": u64 = 50_000_000,
    /// Elements of gathered parameters beyond which they are released.
    stage3_max_live_parameters or "max_live_parameters": u64 = 1_000_000_000,
    /// Elements after which a parameter that is used again is released.
    stage3_max_reuse_distance or "max_reuse_distance": u64 = 1_000_000_000,
    /// Elements below which a parameter is whole on each GPU.
    stage3_param_persistence_threshold or "param_persistence_threshold": u64 = 100_000,
    /// Whether whole weights are gathered to be saved, which no step does.
    stage3_gather_16bit_weights_on_model_save or "gather_16bit_weights_on_model_save": bool = false,
    /// Elements that the optimizer updates at once.
    sub_group_size: u64 = 1_000_000_000,
}

impl Zero {
    /// Reads keys that are not as DeepSpeed has them, such as `reduce_bucket_size=2e8,overlap_comm=false`.
    ///
    /// # Errors
    /// When a part is no `key=value`, or one that [`Self::set`] refuses.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut zero = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is no `key=value` of DeepSpeed's `zero_optimization`"))?;
            let value = serde_json::from_str(value.trim()).unwrap_or_else(|_| value.trim().into());
            zero.set(key.trim(), &value)?;
        }
        Ok(zero)
    }

    /// Writes the keys that are not as DeepSpeed has them, as [`Self::parse`] reads them.
    pub fn text(&self) -> String {
        let fields = |zero: &Self| match serde_json::to_value(zero) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let usual = fields(&Self::default());
        let own = fields(self)
            .into_iter()
            .filter(|(key, value)| usual.get(key) != Some(value));
        own.map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(",")
    }
}

/// Keys that are simulated with one value, DeepSpeed's default.
const FIXED: [(&str, &str); 17] = [
    ("use_multi_rank_bucket_allreduce", "true"),
    ("allgather_partitions", "true"),
    ("compute_grad_norm", "true"),
    ("ignore_unused_parameters", "true"),
    ("legacy_stage1", "false"),
    ("parameter_alignment", "false"),
    ("zero_hpz_partition_size", "1"),
    ("zero_quantized_weights", "false"),
    ("zero_quantized_nontrainable_weights", "false"),
    ("zero_quantized_gradients", "false"),
    ("memory_efficient_linear", "true"),
    ("stage3_module_granularity_threshold", "0"),
    ("stage3_use_all_reduce_for_fetch_params", "false"),
    ("stage3_allgather_sequential", "false"),
    ("mics_shard_size", "-1"),
    ("mics_hierarchical_params_gather", "false"),
    ("zenflow", "null"),
];

/// Keys that change no memory of a training step.
const WITHOUT_EFFECT: [&str; 6] = [
    "load_from_fp32_weights",
    "elastic_checkpoint",
    "pipeline_loading_checkpoint",
    "override_module_apply",
    "log_trace_cache_warnings",
    "enable_sanity_checks",
];

/// Passes a key with the one value that is simulated, and refuses all else by name.
fn fixed(key: &str, value: &serde_json::Value) -> Result<(), String> {
    if WITHOUT_EFFECT.contains(&key) {
        return Ok(());
    }
    let given = value.to_string();
    match FIXED.iter().find(|(known, _)| *known == key) {
        Some((_, simulated)) if given == *simulated => Ok(()),
        Some((_, simulated)) => Err(format!("`zero.{key}` is simulated as {simulated}; leave it out")),
        None if key == "offload_optimizer" || key == "offload_param" => Err(format!(
            "`zero.{key}` is set by `offload`: \"optimizer\" or \"optimizer,param\""
        )),
        None if key == "stage" => Err("`zero.stage` is set by `strategy`: deepspeed0 to deepspeed3".to_owned()),
        None => Err(format!("`zero.{key}` is not simulated; leave it out")),
    }
}

impl<'de> Deserialize<'de> for Zero {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Zero;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of DeepSpeed's keys of `zero_optimization`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Zero, A::Error> {
                let mut zero = Zero::default();
                while let Some((key, value)) = map.next_entry::<String, serde_json::Value>()? {
                    zero.set(&key, &value).map_err(A::Error::custom)?;
                }
                Ok(zero)
            }
        }
        match from.is_human_readable() {
            true => from.deserialize_map(Keys),
            false => Self::in_order(from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Zero, String> {
        serde_json::from_str(text).map_err(|error: serde_json::Error| error.to_string())
    }

    #[test]
    fn keys_that_are_absent_have_deepspeeds_defaults() {
        assert_eq!(read("{}"), Ok(Zero::default()));
        let given = read(r#"{"reduce_bucket_size": 2e8, "overlap_comm": true, "compute_grad_norm": true}"#).unwrap();
        assert_eq!(
            (given.reduce_bucket_size, given.overlap_comm),
            (200_000_000, Some(true))
        );
    }

    #[test]
    fn keys_that_are_not_simulated_are_refused_by_name() {
        for text in [
            r#"{"zero_quantized_weights": true}"#,
            r#"{"mics_shard_size": 4}"#,
            r#"{"offload_optimizer": {"device": "cpu"}}"#,
            r#"{"stage": 2}"#,
            r#"{"some_key": 1}"#,
        ] {
            let key = text.split('"').nth(1).unwrap();
            assert!(read(text).unwrap_err().contains(key), "{text}");
        }
    }

    #[test]
    fn keys_in_one_text_are_read_back() {
        let zero = Zero::parse("reduce_bucket_size=2e8, overlap_comm=false").unwrap();
        assert_eq!((zero.reduce_bucket_size, zero.overlap_comm), (200_000_000, Some(false)));
        assert_eq!(Zero::parse(&zero.text()), Ok(zero));
        assert_eq!(
            (Zero::default().text().as_str(), Zero::parse("")),
            ("", Ok(Zero::default()))
        );
        for wrong in ["reduce_bucket_size", "overlap_comm=maybe", "stage=2"] {
            assert!(Zero::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn offload_is_a_switch_or_deepspeeds_words() {
        for (word, value) in Offload::WORDS {
            let written = serde_json::to_value(value).unwrap();
            assert_eq!(serde_json::from_value::<Offload>(written).unwrap(), value);
            assert_eq!(Offload::named(word), Some(value));
        }
        assert!(serde_json::from_str::<Offload>("\"param\"").is_err());
    }
}
