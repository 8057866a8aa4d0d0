//! Keys of everything that a URL can hold: the settings that the engine declares, and the page's own entries.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use vramscope_engine::Setup;
use vramscope_engine::setup::{Setting, Strategy};
use vramscope_plan::Axis;

use super::{Form, Widget};
use crate::languages::Locale;

/// What an entry affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A run or its fit.
    Run,
    /// Only the time or price of a run, never its memory.
    Time,
    /// The goal of a plan.
    Plan,
    /// The curves of attention.
    Attention,
    /// The axes of a chart.
    Axes,
    /// A sweep.
    Sweep,
    /// The replay of a recording.
    Recording,
    /// What the page shows, and how.
    Page,
}

/// Declares the page's own entries, `Key = "name", Form, "default", Scope`, around the settings. Their order is that of
/// URLs.
macro_rules! keys {
    (
        $( $(#[doc = $first_doc:literal])+ $First:ident = $first:literal, $first_form:expr, $first_default:literal, $first_scope:ident; )+
        settings;
        $( $(#[doc = $doc:literal])+ $Key:ident = $name:literal, $form:expr, $default:literal, $scope:ident; )+
    ) => {
        /// All entries that a URL can hold, under the names used in case files and on the command line.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Key {
            $( $(#[doc = $first_doc])+ $First, )+
            /// A setting of the run.
            Setting(Setting),
            $( $(#[doc = $doc])+ $Key, )+
        }

        impl Key {
            /// All keys, in the order in which a URL lists them.
            pub fn all() -> impl Iterator<Item = Self> {
                let first = [$( Self::$First ),+].into_iter();
                let settings = Setting::ALL.iter().map(|setting| Self::Setting(*setting));
                first.chain(settings).chain([$( Self::$Key ),+])
            }

            /// Name in the URL.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$First => $first, )+
                    Self::Setting(setting) => setting.key(),
                    $( Self::$Key => $name, )+
                }
            }

            /// Format of the key's text.
            pub fn form(self) -> Form {
                match self {
                    $( Self::$First => $first_form, )+
                    Self::Setting(Setting::Seq) => Form::OptionalCount,
                    Self::Setting(setting) => Form::of(setting.declaration().kind),
                    $( Self::$Key => $form, )+
                }
            }

            /// Text that applies if nothing is entered.
            pub fn default_text(self) -> &'static str {
                match self {
                    $( Self::$First => $first_default, )+
                    Self::Setting(setting) => &defaults()[setting as usize],
                    $( Self::$Key => $default, )+
                }
            }

            /// What the entry affects.
            pub const fn scope(self) -> Scope {
                match self {
                    $( Self::$First => Scope::$first_scope, )+
                    Self::Setting(_) => Scope::Run,
                    $( Self::$Key => Scope::$scope, )+
                }
            }
        }
    };
}

keys! {
    /// Catalogue name of the model.
    Model = "model", Form::Text, "llava-1.5-7b", Run;
    /// A pasted `config.json`; replaces [`Key::Model`].
    Config = "config", Form::Text, "", Run;
    /// A recording: a name of the gallery, or a file beside the page.
    Recording = "recording", Form::Text, "", Recording;
    /// Sizes of a recording that covers several, by name.
    Sizes = "sizes", Form::NamedCounts, "", Recording;
    /// The segments of the allocator under a recording.
    ExpandableSegments = "expandable_segments", Form::Choice(&["recorded", "true", "false"]), "recorded", Recording;
    /// Form of the optimizer's update under a recording.
    OptimizerForm = "optimizer_form", Form::Choice(&["recorded", "foreach", "fused", "for-loop"]), "recorded", Recording;
    /// The card.
    Gpu = "gpu", Form::Text, "H100 SXM", Run;
    /// Limit of the bytes that the allocator may reserve.
    LimitGib = "limit_gib", Form::Gib, "", Run;
    /// Task: training, evaluation or generation.
    Phase = "phase", Form::Choice(&["train", "evaluate", "generate"]), "train", Run;
    /// Tokens to generate.
    NewTokens = "new_tokens", Form::Count, "128", Run;
    settings;
    /// Number of GPUs that share a training step; one alone has no strategy.
    World = "world", Form::Count, "1", Run;
    /// Strategy by which they share it.
    Strategy = "strategy", Form::Choice(Strategy::CHOICES.names), "fsdp", Run;
    /// FSDP2's mixed precision.
    Mp = "mp", Form::Switch, "false", Run;
    /// Tensors that the strategy keeps in the host's memory.
    Offload = "offload", Form::Choice(&["false", "true", "optimizer", "optimizer,param"]), "false", Run;
    /// Bucket of DDP's gradients (MB).
    Bucket = "bucket", Form::Count, "25", Run;
    /// DeepSpeed's keys of `zero_optimization` that are not as it has them.
    Zero = "zero", Form::Zero, "", Run;
    /// Share of the card's memory that vLLM takes in the training process.
    VllmShare = "vllm_share", Form::Amount, "", Run;
    /// Settings that the run's launch file asks for and the setup leaves out, as JSON.
    NotThisRun = "not_this_run", Form::Text, "", Run;
    /// Network between the GPUs (GB/s).
    Link = "link", Form::Rate, "", Time;
    /// Data pipeline, stage by stage.
    Data = "data", Form::Text, "", Time;
    /// Samples of the whole run.
    Samples = "samples", Form::SampleCount, "", Time;
    /// Price of a GPU per hour.
    PricePerHour = "price_per_hour", Form::Amount, "", Time;
    /// Maximum power draw of a card in watts.
    Watts = "watts", Form::Amount, "", Time;
    /// Target samples per optimizer step, over all GPUs of a plan.
    Effective = "effective", Form::OptionalCount, "", Plan;
    /// Number of GPUs of a plan.
    Gpus = "gpus", Form::Count, "1", Plan;
    /// Percentage of the memory that a plan leaves free.
    Margin = "margin", Form::Text, "5", Plan;
    /// Entries that a plan may change.
    Open = "open", Form::Text, "", Plan;
    /// Setups compared side by side with the current one.
    Compare = "compare", Form::Setups, "", Page;
    /// Query heads of the attention page.
    Heads = "heads", Form::OptionalCount, "", Attention;
    /// Key and value heads.
    KvHeads = "kv_heads", Form::OptionalCount, "", Attention;
    /// Elements of one head.
    HeadDim = "head_dim", Form::OptionalCount, "", Attention;
    /// Data type of queries, keys and values.
    Dtype = "dtype", Form::Choice(&["model", "bf16", "fp16", "fp32"]), "model", Attention;
    /// Causal masking.
    Causal = "causal", Form::Choice(&["model", "true", "false"]), "model", Attention;
    /// Sliding window.
    Window = "window", Form::Count, "512", Attention;
    /// Percent of the keys that top-k keeps.
    Topk = "topk", Form::Count, "10", Attention;
    /// Queries per chunk of chunked attention.
    Chunk = "chunk", Form::Count, "64", Attention;
    /// Passes included: training or forward only.
    Pass = "pass", Form::Choice(&["training", "forward"]), "training", Attention;
    /// Longest sequence of the attention curves.
    Longest = "longest", Form::Count, "16384", Attention;
    /// Sequence length used in the formulas.
    At = "at", Form::Count, "2048", Attention;
    /// Attention algorithms shown.
    Algorithms = "algorithms", Form::Text, "standard,flash,sliding,topk,chunked", Attention;
    /// Logarithmic horizontal axis.
    LogX = "log_x", Form::Switch, "true", Axes;
    /// Logarithmic vertical axis.
    LogY = "log_y", Form::Switch, "true", Axes;
    /// The entry that is swept.
    Sweep = "sweep", Form::Choice(Axis::names()), "batch", Sweep;
    /// Cards that a sweep is compared with.
    Cards = "cards", Form::Text, "", Sweep;
    /// Ids of the benchmark records shown.
    Records = "records", Form::Text, "", Page;
    /// Row of the course.
    Row = "row", Form::Text, "", Page;
    /// One block of that row.
    Figure = "figure", Form::Text, "", Page;
    /// Answers entered in the fields of that row.
    Given = "given", Form::Text, "", Page;
    /// Seed for the exercises' numbers.
    Seed = "seed", Form::OptionalCount, "", Page;
    /// Large type for presentations.
    Present = "present", Form::Choice(&["1"]), "", Page;
    /// Language of the page.
    Lang = "lang", Form::Choice(Locale::TAGS), "", Page;
    /// Light or dark.
    Theme = "theme", Form::Choice(&["light", "dark"]), "", Page;
    /// Marks a page that runs inside a frame of another page.
    Embed = "embed", Form::Choice(&["1"]), "", Page;
    /// Widget shown in that frame.
    Widget = "widget", Form::Choice(&Widget::NAMES), "", Page;
    /// Id by which the embedding page identifies the frame.
    Id = "id", Form::Text, "", Page;
}

/// Texts of the settings' defaults, in the order of declaration. That of the sequence length is empty: it depends on the
/// model ([`Model::default_seq`](vramscope_engine::Model::default_seq)).
fn defaults() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let setup = Setup::default();
        let mut texts: Vec<String> = Setting::ALL.iter().map(|setting| setting.of(&setup).text()).collect();
        texts[Setting::Seq as usize].clear();
        texts
    })
}

impl Key {
    /// Keys of an embedded page, which are also accepted in the query before the `#`.
    pub const OF_FRAME: [Self; 3] = [Self::Embed, Self::Widget, Self::Id];

    /// Finds a key by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|key| key.name() == name)
    }

    /// Allowed words of the key; empty if it is not a choice.
    pub fn choices(self) -> &'static [&'static str] {
        match self.form() {
            Form::Choice(all) => all,
            Form::ModelSwitch => &["model", "true", "false"],
            _ => &[],
        }
    }

    /// Returns true if the value is part of the training setup, under the same name in a case file.
    pub const fn in_setup(self) -> bool {
        matches!(self, Self::Setting(_))
    }

    /// Returns true if the value says how many GPUs share a run, or how.
    pub const fn shares(self) -> bool {
        matches!(
            self,
            Self::World | Self::Strategy | Self::Mp | Self::Offload | Self::Bucket | Self::Zero
        )
    }

    /// Returns true if the value affects a run or its fit: setup, model, card or task.
    pub fn decides_run(self) -> bool {
        self.scope() == Scope::Run
    }

    /// Returns true if the value affects the memory of a recorded step or its fit, besides the recording itself.
    pub const fn decides_recorded(self) -> bool {
        matches!(
            self,
            Self::Sizes | Self::ExpandableSegments | Self::OptimizerForm | Self::Gpu | Self::LimitGib
        )
    }
}

impl From<Setting> for Key {
    fn from(setting: Setting) -> Self {
        Self::Setting(setting)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use vramscope_engine::setup::Kind;

    use super::*;

    #[test]
    fn every_key_is_found_by_its_name() {
        for key in Key::all() {
            assert_eq!(Key::named(key.name()), Some(key));
        }
    }

    #[test]
    fn every_default_has_its_form() {
        for key in Key::all() {
            assert!(key.form().read(key.default_text()).is_ok(), "{key:?}");
        }
    }

    /// A setting needs its declaration and these words: a label, help, and a name for each choice.
    #[test]
    fn every_setting_has_its_words() {
        let locales = Path::new(env!("CARGO_MANIFEST_DIR")).join("locales");
        let phrases = vramscope_phrases::read(&locales).expect("the page's phrases");
        let has = |subject: &str, key: &str| {
            let mut all = phrases.iter();
            all.any(|phrase| phrase.subject == subject && phrase.key == key)
        };
        for setting in Setting::ALL {
            let key = setting.key();
            assert!(
                has("setup", key) && has("help", key),
                "{key} lacks its label or help in src/app/locales"
            );
            if let Kind::Choice(choices) = setting.declaration().kind {
                for name in choices.names {
                    let word = format!("{key}_{}", name.replace('-', "_"));
                    let is_named = has("choice", &word) || choices.title_of(name).is_some();
                    assert!(is_named, "src/app/locales lacks `{word}` in choice.json");
                }
            }
        }
    }

    /// Words of entries are found by name, so that the compiler cannot tell which are left over.
    #[test]
    fn words_of_entries_are_of_an_entry() {
        let locales = Path::new(env!("CARGO_MANIFEST_DIR")).join("locales");
        let phrases = vramscope_phrases::read(&locales).expect("the page's phrases");
        let is_choice = |word: &str| {
            let of = |key: Key| {
                let own = word.strip_prefix(key.name()).and_then(|rest| rest.strip_prefix('_'));
                own.is_some_and(|own| key.choices().iter().any(|choice| choice.replace('-', "_") == own))
            };
            Key::all().any(of)
        };
        for phrase in phrases {
            let is_used = match phrase.subject.as_str() {
                "setup" | "help" => Key::named(&phrase.key).is_some(),
                "choice" => is_choice(&phrase.key),
                _ => true,
            };
            assert!(is_used, "{}.{} is of no entry", phrase.subject, phrase.key);
        }
    }

    /// Links that exist list their entries in this order, and keep it when they are written again.
    #[test]
    fn keys_are_in_the_order_of_links() {
        let names: Vec<&str> = Key::all().map(Key::name).collect();
        let mut keys: Vec<Key> = Key::all().collect();
        keys.sort();
        assert_eq!(keys.into_iter().map(Key::name).collect::<Vec<_>>(), names);
        let old = "model config recording expandable_segments gpu limit_gib phase new_tokens batch seq lengths packing \
                   images image grid image_sizes frames precision optim ckpt attn freeze rank lora_dropout lora_targets \
                   lora_dtype accum clip zero_grad autocast_cache ema loss trainer completion reference use_cache data samples price_per_hour watts \
                   effective gpus margin open compare heads kv_heads head_dim dtype causal window topk chunk pass longest \
                   at algorithms log_x log_y sweep cards records row figure given seed present lang theme embed widget id";
        let old: Vec<&str> = old.split(' ').collect();
        let kept: Vec<&str> = names.into_iter().filter(|name| old.contains(name)).collect();
        assert_eq!(kept, old);
    }
}
