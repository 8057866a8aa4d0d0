//! Reads the files that start a run, for `estimate --launch`.

use clap::Args;
use vramscope_engine::setup::Setting;
use vramscope_engine::verdict::Fit;
use vramscope_engine::{Case, Report};
use vramscope_hub::Place;
use vramscope_launch::{
    Direction, Grade, Graded, Launch, LeftOut, OfLengths, Resolved, Source as LaunchSource, read_on,
};

use super::beside::with_files_beside;
use super::hub::place_of;
use super::setup_flags::SetupFlags;
use super::source::Source;
use crate::failure::Failure;
use crate::output::target::Target;

/// Flags of a run that a tool's file or command describes.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct LaunchFlags {
    /// A file that starts the run, or a script with its command, or - for standard input: of transformers, TRL,
    /// LLaMA-Factory, ms-swift or axolotl, with DeepSpeed's and accelerate's beside it (give --launch again). Flags
    /// override it
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse)]
    launch: Vec<Source>,
    /// A second run, given like --launch's, to compare with it: prints where the memory of the two differs, tensor by
    /// tensor. Flags hold for both
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse, requires = "launch")]
    against: Vec<Source>,
    /// Estimate the rest of a --launch though some of what changes memory in it is not simulated
    #[arg(long, requires = "launch")]
    ignore_not_simulated: bool,
}

impl LaunchFlags {
    /// The flags of a run that these files or this command start.
    pub const fn of(launch: Vec<Source>, ignore_not_simulated: bool) -> Self {
        Self {
            launch,
            against: Vec::new(),
            ignore_not_simulated,
        }
    }

    /// Reads the launch for a card that has bf16 or not, if one is named; `None` if no launch is given.
    ///
    /// # Errors
    /// If a file can't be read, or is of no known tool.
    pub fn read(&self, has_bf16: Option<bool>) -> Result<Option<Launch>, Failure> {
        read_all(&self.launch, has_bf16)
    }

    /// Reads the run that is held beside it; `None` if none is given.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_against(&self, has_bf16: Option<bool>) -> Result<Option<Launch>, Failure> {
        read_all(&self.against, has_bf16)
    }

    /// Returns where the names in a launch stand.
    pub fn place(&self, launch: &Launch) -> Place {
        place_of(launch, &self.launch)
    }

    /// Returns where the names in the run that is held beside it stand.
    pub fn place_against(&self, launch: &Launch) -> Place {
        place_of(launch, &self.against)
    }

    /// Returns the names of the files of both runs.
    pub fn names(&self) -> [String; 2] {
        [&self.launch, &self.against].map(|all| {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            names.join(", ")
        })
    }

    /// Returns the case of a launch, resolved for its model, with the name of a model only if it has one.
    ///
    /// Without a model the case stands as it is: that none is named is what has to be said first.
    ///
    /// # Errors
    /// If no figure bounds the run and what is not simulated may not be ignored, or the case is none that the engine takes.
    pub fn case(&self, resolved: &Resolved, standing: &Standing, names_model: bool) -> Result<Case, Failure> {
        if !names_model {
            return case_of(resolved);
        }
        let left_out = standing.left_out();
        let is_another = left_out.iter().any(LeftOut::is_another_run);
        let is_bound = Grade::of(left_out) != Grade::DryRun;
        if is_another || !is_bound && !self.ignore_not_simulated {
            return Err(Failure::NotKnown(self.unbounded(left_out, is_another)));
        }
        case_of(resolved)
    }

    /// The case of a launch that was judged before, at another length.
    ///
    /// # Errors
    /// If it is none that the engine takes.
    pub fn any_case(&self, resolved: &Resolved) -> Result<Case, Failure> {
        case_of(resolved)
    }

    /// Why no figure bounds the run, and the command that finds out.
    fn unbounded(&self, left_out: &[LeftOut], is_another: bool) -> String {
        let deciding = |left: &&LeftOut| !left.is_bound();
        // Bounds on both sides are none together.
        let deciding: Vec<&LeftOut> = match left_out.iter().any(|left| deciding(&left)) {
            true => left_out.iter().filter(deciding).collect(),
            false => left_out.iter().collect(),
        };
        let all: Vec<String> = deciding.into_iter().map(said).collect();
        let head = match is_another {
            true if self.ignore_not_simulated => {
                "without what is not simulated of it, this would be another run, of which a figure says nothing:"
            }
            _ => "some of what this run is told changes its memory and is not simulated:",
        };
        let rest = match is_another {
            true => "",
            false => "; or estimate the rest with --ignore-not-simulated",
        };
        format!(
            "{head}\n  {}\nRun it dry, which needs no GPU: `{}`{rest}",
            all.join("\n  "),
            self.dry_run()
        )
    }

    /// A refusal of the engine, with the command that finds out of a run that files start.
    pub fn or_dry(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Input(why) if !self.launch.is_empty() && why.contains(" is not simulated with ") => {
                let command = self.dry_run();
                Failure::Input(format!(
                    "{why}, which is another run; or run it dry, which needs no GPU: `{command}`"
                ))
            }
            other => other,
        }
    }

    /// The command that records the run without a GPU.
    pub fn dry_run(&self) -> String {
        match self.launch.first() {
            Some(Source::File(path)) => {
                let name = path.display().to_string();
                let quoted = shlex::try_quote(&name).map_or_else(|_| name.clone(), |quoted| quoted.into_owned());
                format!("vramscope dry-run {quoted}")
            }
            Some(Source::Command(words)) => format!("vramscope dry-run {words}"),
            Some(Source::Stdin) | None => "vramscope dry-run COMMAND".to_owned(),
        }
    }
}

/// Facts of the run that flags give beside its setup.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// True if they give the number of GPUs.
    pub gpus: bool,
    /// True if they give the card whose memory the verdict is of.
    pub card: bool,
}

/// What a launch leaves out once flags are applied: lengths and sizes of images that they give are missing no more, and what
/// vLLM takes of a card is known once the card is.
fn left_out(resolved: &Resolved, flags: &SetupFlags, named: Named) -> Vec<LeftOut> {
    let is_given = |left: &LeftOut| {
        named.gpus && left.is_missing_gpus()
            || named.card && left.is_vllm_beside()
            || flags.names_seq() && left.is_missing_length()
            || flags.names_images() && left.is_missing_images()
    };
    // The bytes held beside were counted for the batch and length of the files: flags that change these leave the bound open.
    let is_held = resolved.case.contains_key(Setting::Beside.key());
    let is_open = is_held && (flags.names_batch() || flags.names_seq());
    let all = resolved.not_this_run.iter().filter(|left| !is_given(left)).cloned();
    // With the images of one sample given, how many a row of several has is open; a full row has no fewer.
    let is_least = |left: &LeftOut| left.is_of_packed_images() && flags.names_images();
    let is_unbound = |left: &LeftOut| left.is_of_loss() && is_open || left.is_of_full_rows() && flags.names_images();
    all.map(|left| {
        let direction = match left.direction {
            _ if is_unbound(&left) => Direction::Unknown,
            _ if is_least(&left) => Direction::AtLeast,
            direction => direction,
        };
        LeftOut { direction, ..left }
    })
    .collect()
}

/// What the figures of a run rest on, beside its setup.
#[derive(Debug, Default)]
pub struct Standing {
    /// What they leave out of the run.
    pub left_out: Vec<LeftOut>,
    /// Share of the card that vLLM takes in the same process.
    pub vllm_share: Option<f64>,
    /// GPUs over which one process spreads the layers of the model.
    pub layers_over: Option<u64>,
    /// Bounds of a run whose files do not tell how long its samples are.
    pub lengths: OfLengths,
}

impl Standing {
    /// What a launch leaves out once flags are applied.
    pub fn of(resolved: &Resolved, flags: &SetupFlags, named: Named) -> Self {
        Self {
            left_out: left_out(resolved, flags, named),
            vllm_share: resolved.vllm_share,
            layers_over: resolved.layers_over,
            lengths: OfLengths::default(),
        }
    }

    /// Judges a run of one of several GPUs.
    pub fn fit(&self, report: &Report, target: &Target, gpus: u64) -> Fit {
        Fit::of_each(report, target.room().beside_vllm(self.vllm_share), gpus)
    }

    /// What of the run the estimate leaves out.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The document of a run with its grade.
    pub fn grade<D>(&self, estimate: D) -> Graded<'_, D> {
        Graded::of(estimate, &self.left_out)
            .over(self.layers_over)
            .with(self.lengths)
    }
}

/// Flag for the run that an error belongs to.
#[derive(Debug, Default, Args)]
pub struct LaunchOfError {
    /// A file that started the run, as `estimate --launch` takes it (give it again for several); what is not simulated in
    /// it is noted
    #[arg(long, value_name = "FILE", value_parser = Source::parse, conflicts_with = "recording")]
    launch: Vec<Source>,
}

impl LaunchOfError {
    /// True if a launch is given.
    pub fn is_given(&self) -> bool {
        !self.launch.is_empty()
    }

    /// Reads the launch; `None` if none is given.
    ///
    /// # Errors
    /// If a file can't be read, or is of no known tool.
    pub fn read(&self) -> Result<Option<Launch>, Failure> {
        read_all(&self.launch, None)
    }

    /// Returns where the names in a launch stand.
    pub fn place(&self, launch: &Launch) -> Place {
        place_of(launch, &self.launch)
    }

    /// Returns the case of a launch, resolved for its model, and notes on standard error what is not simulated; `None` if
    /// that makes the case another run, whose advice would be of no use.
    ///
    /// # Errors
    /// If the case is none that the engine takes.
    pub fn case(resolved: &Resolved) -> Result<Option<Case>, Failure> {
        for remark in &resolved.not_simulated {
            anstream::eprintln!("note: not simulated: {remark}");
        }
        if resolved.another_run().next().is_some() {
            anstream::eprintln!("note: without it the run would be another one, so its setup is not simulated");
            return Ok(None);
        }
        case_of(resolved).map(Some)
    }
}

fn case_of(resolved: &Resolved) -> Result<Case, Failure> {
    let mut case = resolved.case.clone();
    case.entry("model").or_insert_with(|| "".into());
    let text = serde_json::Value::Object(case).to_string();
    let case = Case::from_json(&text).map_err(|e| Failure::Input(format!("the setup of --launch: {e}")))?;
    case.ok_or_else(|| Failure::Input("--launch says nothing of a setup".into()))
}

fn said(left: &LeftOut) -> String {
    match &left.given {
        Some(given) => format!("{given}: {}", left.why),
        None => left.why.clone(),
    }
}

fn read_all(given: &[Source], has_bf16: Option<bool>) -> Result<Option<Launch>, Failure> {
    if given.is_empty() {
        return Ok(None);
    }
    let all = with_files_beside(given)?;
    let sources: Vec<LaunchSource<'_>> = all.iter().map(|(name, text)| LaunchSource { name, text }).collect();
    read_on(&sources, has_bf16).map(Some).map_err(Failure::input)
}
