//! Flags for the available memory: a card, or a limit of the allocator.

use std::sync::Once;

use clap::Args;
use vramscope_engine::device::{Device, Found, REFERENCE};
use vramscope_engine::report::outside;
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;

use crate::failure::Failure;
use crate::output::target::Target;

/// Ensures that the note on an ambiguous card name is printed only once.
static SAID: Once = Once::new();

/// A card or a limit, where one was named.
#[derive(Debug, Clone, Args)]
pub struct RoomFlags {
    /// The card that it should fit (see `vramscope gpus`)
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    /// What PyTorch's allocator may reserve, instead of a whole card; of a named card, where it is less
    #[arg(long, value_name = "GIB")]
    limit_gib: Option<f64>,
}

impl RoomFlags {
    /// The target that the flags name, if any.
    ///
    /// # Errors
    /// If the card is unknown or the limit is not an amount of memory.
    pub fn target(&self) -> Result<Option<Target>, Failure> {
        let limit = self.limit_gib.map(|gib| limit(gib, "--limit-gib")).transpose()?;
        Ok(match self.card()? {
            Some(card) => Some(match Room::limited(card, limit) {
                Room::Allocator(limit) => Target::Limit(limit),
                Room::Card(_) | Room::BesideVllm(..) => Target::Card(card),
            }),
            None => limit.map(Target::Limit),
        })
    }

    /// Bytes available to PyTorch's allocator on the named card or under the named limit.
    ///
    /// # Errors
    /// Those of [`Self::target`].
    pub fn for_allocator(&self) -> Result<Option<Bytes>, Failure> {
        Ok(self.target()?.map(|target| match target {
            Target::Card(card) => outside::for_allocator(card, 1),
            Target::Limit(bytes) => bytes,
        }))
    }

    /// Bytes available to PyTorch's allocator on each of several GPUs, where communication needs buffers too.
    ///
    /// # Errors
    /// Those of [`Self::target`].
    pub fn for_allocator_of(&self, gpus: u64) -> Result<Option<Bytes>, Failure> {
        Ok(self.target()?.map(|target| match target {
            Target::Card(card) => outside::for_allocator(card, gpus),
            Target::Limit(bytes) => bytes,
        }))
    }

    /// Bytes outside PyTorch's allocator on the named card, or else on the reference card.
    ///
    /// # Errors
    /// If the card is unknown.
    pub fn outside(&self) -> Result<Bytes, Failure> {
        Ok(outside::total(self.card_or_reference()?))
    }

    /// Returns true if a card was named.
    pub const fn names_card(&self) -> bool {
        self.gpu.is_some()
    }

    /// Multiprocessors and compute capability of the named card; those of the reference card if none was named, or if they are
    /// unknown.
    ///
    /// # Errors
    /// If the card is unknown.
    pub fn gpu(&self) -> Result<Gpu, Failure> {
        Ok(self.card()?.and_then(Device::gpu).unwrap_or_default())
    }

    /// The named card, or else the reference card.
    ///
    /// # Errors
    /// If the card is unknown.
    pub fn card_or_reference(&self) -> Result<&'static Device, Failure> {
        match self.card()? {
            Some(card) => Ok(card),
            None => Device::by_name(REFERENCE).map_err(Failure::input),
        }
    }

    /// Returns true if the named card has bf16, in which programs may then run; `None` if none is named, or if it is not known.
    ///
    /// # Errors
    /// If the card is unknown.
    pub fn has_bf16(&self) -> Result<Option<bool>, Failure> {
        Ok(self.card()?.and_then(Device::has_bf16))
    }

    fn card(&self) -> Result<Option<&'static Device>, Failure> {
        let Some(name) = self.gpu.as_deref() else {
            return Ok(None);
        };
        let found = Device::find(name).map_err(Failure::input)?;
        SAID.call_once(|| say_which(name, &found));
        Ok(Some(found.card))
    }
}

fn say_which(name: &str, found: &Found) {
    if found.others.is_empty() {
        return;
    }
    let (card, memory) = (found.card.name, found.card.memory().get() >> 30);
    let others: Vec<&str> = found.others.iter().map(|other| other.name).collect();
    anstream::eprintln!(
        "note: {name} → {card}, {memory} GB, its most common board; also known: {}",
        others.join(", ")
    );
}

/// Converts an amount in GiB that was given as the flag `name`.
///
/// # Errors
/// If it is not an amount of memory.
pub fn limit(gib: f64, name: &str) -> Result<Bytes, Failure> {
    // 2⁵⁰ bytes exceed any device, and fit into an integer.
    if !(gib > 0.0 && gib <= 1_048_576.0) {
        return Err(Failure::Input(format!(
            "{name} {gib}: give what the allocator may reserve in GiB, above 0, such as 23.5"
        )));
    }
    Ok(Bytes::new((gib * f64::from(1 << 30)) as u64))
}

/// A limit reduced by a margin in percent.
///
/// # Errors
/// If the margin is outside its range.
pub fn less_margin(limit: Bytes, percent: f64) -> Result<Bytes, Failure> {
    if !(0.0..=90.0).contains(&percent) {
        return Err(Failure::Input(format!(
            "--margin {percent}: give the percentage that stays free, from 0 to 90, such as 5"
        )));
    }
    Ok(vramscope_plan::less_margin(limit, percent))
}
