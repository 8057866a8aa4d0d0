//! Settings of FSDP in a launch: accelerate's file, and the arguments of transformers and axolotl.

use serde_json::Value;

use crate::given::Fault::{self, NotSimulated, Wrong};
use crate::values::{text, truth, whole};

/// Settings of FSDP; `None` where nothing is said.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fsdp {
    /// True if it shards the model.
    pub is_on: Option<bool>,
    /// True if transformers' own arguments switch it on, whose defaults are not accelerate's.
    pub is_of_arguments: Option<bool>,
    pub version: Option<u64>,
    /// True if parameters are freed after forward.
    pub reshards: Option<bool>,
    /// True if the host keeps shards.
    pub offloads: Option<bool>,
    /// True if FSDP checkpoints the modules that it wraps.
    pub checkpoints: Option<bool>,
    /// True if backward gathers a unit ahead.
    pub prefetches: Option<bool>,
    /// Classes of modules that are wrapped.
    pub classes: Option<String>,
}

impl Fsdp {
    /// Returns these settings, and those of `other` where nothing is said here.
    pub fn over(self, other: Self) -> Self {
        Self {
            is_on: self.is_on.or(other.is_on),
            is_of_arguments: self.is_of_arguments.or(other.is_of_arguments),
            version: self.version.or(other.version),
            reshards: self.reshards.or(other.reshards),
            offloads: self.offloads.or(other.offloads),
            checkpoints: self.checkpoints.or(other.checkpoints),
            prefetches: self.prefetches.or(other.prefetches),
            classes: self.classes.or(other.classes),
        }
    }

    /// Sets what a key stands for.
    pub fn set(&mut self, knob: &str, value: &Value) -> Result<(), Fault> {
        match knob {
            "use" => self.is_on = Some(truth(value)?),
            "arguments" => self.arguments(value)?,
            "version" => {
                let version = whole(value)?;
                if !(1..=2).contains(&version) {
                    return Err(Wrong("1 or 2"));
                }
                self.version = Some(version);
            }
            "reshard" => self.reshards = reshards(value)?.or(self.reshards),
            "offload" => self.offloads = Some(truth(value)?),
            "classes" => {
                self.classes = Some(match value {
                    Value::Array(names) => names.iter().map(text).collect::<Result<Vec<_>, _>>()?.join(","),
                    name => text(name)?,
                });
            }
            "checkpointing" => self.checkpoints = Some(truth(value)?),
            "prefetch" => {
                let word = text(value)?.to_ascii_uppercase();
                self.prefetches = Some(matches!(word.as_str(), "BACKWARD_PRE" | "1"));
            }
            "wrap" => {
                if !matches!(
                    text(value)?.as_str(),
                    "TRANSFORMER_BASED_WRAP" | "transformer_based_wrap"
                ) {
                    return Err(NotSimulated(
                        "wrapping by size, or of the whole model alone, is not simulated",
                    ));
                }
            }
            _ => return Err(Wrong("a setting that is known here")),
        }
        Ok(())
    }

    /// `--fsdp` of transformers: true, or words such as `full_shard auto_wrap offload`.
    fn arguments(&mut self, value: &Value) -> Result<(), Fault> {
        let words: Vec<String> = match value {
            Value::Array(items) => items.iter().map(text).collect::<Result<_, _>>()?,
            Value::Bool(is_on) => vec![is_on.to_string()],
            other => text(other)?.split([' ', ',']).map(str::to_owned).collect(),
        };
        let words = words.iter().map(|word| word.to_ascii_lowercase());
        for word in words.filter(|word| !word.is_empty()) {
            match word.as_str() {
                "false" => return Ok(()),
                "true" | "auto_wrap" => {}
                "offload" => self.offloads = Some(true),
                // The file that ms-swift brings along (`swift/config/fsdp2.json`).
                "fsdp2" => (self.version, self.checkpoints) = (Some(2), Some(true)),
                word => self.reshards = reshards(&word.into())?.or(self.reshards),
            }
            (self.is_on, self.is_of_arguments) = (Some(true), Some(true));
        }
        Ok(())
    }

    /// The version that runs, by the tool's default: accelerate's is the first, that of transformers' arguments the second
    /// since transformers 5.
    pub fn runs(&self, takes_arguments: bool, is_before_5: bool) -> u64 {
        let is_of_arguments = self.is_of_arguments == Some(true) && takes_arguments && !is_before_5;
        self.version.unwrap_or(if is_of_arguments { 2 } else { 1 })
    }
}

/// True for what frees parameters after forward: a truth (FSDP2), or a strategy by its name or number (FSDP1).
fn reshards(value: &Value) -> Result<Option<bool>, Fault> {
    if let Ok(is_on) = truth(value) {
        // Of FSDP1 a number names the strategy.
        if !matches!(value, Value::Number(_)) {
            return Ok(Some(is_on));
        }
    }
    match text(value)?.to_ascii_uppercase().as_str() {
        "FULL_SHARD" | "1" => Ok(Some(true)),
        "SHARD_GRAD_OP" | "2" => Ok(Some(false)),
        "NO_SHARD" | "3" | "HYBRID_SHARD" | "4" | "HYBRID_SHARD_ZERO2" | "5" => {
            Err(NotSimulated("FULL_SHARD and SHARD_GRAD_OP are simulated"))
        }
        _ => Err(Wrong("true, false, FULL_SHARD or SHARD_GRAD_OP")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_arguments_and_of_files_are_read() {
        let mut fsdp = Fsdp::default();
        fsdp.set("arguments", &json!("shard_grad_op auto_wrap offload"))
            .unwrap();
        assert_eq!(
            (fsdp.is_on, fsdp.reshards, fsdp.offloads),
            (Some(true), Some(false), Some(true))
        );
        assert_eq!((fsdp.runs(true, false), fsdp.runs(true, true)), (2, 1));
        let mut fsdp = Fsdp::default();
        for (knob, value) in [
            ("reshard", json!("FULL_SHARD")),
            ("prefetch", json!("BACKWARD_PRE")),
            ("wrap", json!("TRANSFORMER_BASED_WRAP")),
        ] {
            fsdp.set(knob, &value).unwrap();
        }
        assert_eq!(
            (fsdp.reshards, fsdp.prefetches, fsdp.runs(true, false)),
            (Some(true), Some(true), 1)
        );
        assert!(fsdp.set("reshard", &json!("HYBRID_SHARD")).is_err());
        assert!(fsdp.set("wrap", &json!("SIZE_BASED_WRAP")).is_err());
        fsdp.set("reshard", &json!(false)).unwrap();
        assert_eq!(fsdp.reshards, Some(false));
        let mut off = Fsdp::default();
        off.set("arguments", &json!("")).unwrap();
        assert_eq!(off, Fsdp::default());
    }

    fn case(texts: &[&str]) -> crate::Resolved {
        let sources: Vec<crate::Source<'_>> = texts.iter().map(|text| crate::Source { name: "x", text }).collect();
        crate::read(&sources).unwrap().resolve(crate::ModelFacts::UNKNOWN)
    }

    #[test]
    fn files_of_accelerate_and_arguments_of_tools_choose_the_strategy() {
        let accelerate = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n\
            num_processes: 4\nfsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
        let trainer = "accelerate launch train.py --output_dir x --per_device_train_batch_size 1";
        let of_file = |more: &str| case(&[trainer, &format!("{accelerate}{more}")]);
        for (more, strategy) in [
            ("  fsdp_version: 2\n", "fsdp"),
            (
                "  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n",
                "fsdp_no_reshard",
            ),
            (
                "  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_backward_prefetch: BACKWARD_PRE\n",
                "fsdp1",
            ),
            ("  fsdp_sharding_strategy: SHARD_GRAD_OP\n", "fsdp1_no_reshard"),
        ] {
            let resolved = of_file(more);
            assert_eq!(resolved.case["strategy"], strategy, "{more}");
            assert_eq!(
                (&resolved.case["world"], &resolved.case["trainer"]),
                (&json!(4), &json!("transformers"))
            );
        }
        let offloaded =
            of_file("  fsdp_version: 2\n  fsdp_offload_params: true\n  fsdp_activation_checkpointing: true\n");
        assert_eq!(
            (&offloaded.case["offload"], &offloaded.case["ckpt"]),
            (&json!(true), &json!("full"))
        );
        let of_arguments =
            case(&["torchrun --nproc_per_node 2 train.py --output_dir x --fsdp \"full_shard auto_wrap\""]);
        assert_eq!(
            (&of_arguments.case["strategy"], &of_arguments.case["world"]),
            (&json!("fsdp"), &json!(2))
        );
        let axolotl = "base_model: a/b\ndatasets:\n  - path: x\nnum_processes: 2\nfsdp_version: 2\nfsdp_config:\n  \
            offload_params: false\n  reshard_after_forward: true\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
        assert_eq!(case(&["axolotl train x", axolotl]).case["strategy"], "fsdp");
    }
}
