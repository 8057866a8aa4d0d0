//! Which memory a run is given: a card's, or a limit of the allocator.

use std::sync::Once;

use clap::Args;
use vramscope_engine::device::{Device, Found, REFERENCE};
use vramscope_engine::report::outside;
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;

use crate::failure::Failure;
use crate::output::target::Target;

/// That a name was taken as one of several boards is said once, however often the card is asked for.
static SAID: Once = Once::new();

/// A card or a limit, where one was named.
#[derive(Debug, Args)]
pub struct RoomFlags {
    /// The card that it should fit (see `vramscope gpus`)
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    /// What PyTorch's allocator may reserve, instead of a whole card; of a named card, where it is less
    #[arg(long, value_name = "GIB")]
    limit_gib: Option<f64>,
}

impl RoomFlags {
    /// What the run is held against.
    ///
    /// # Errors
    /// When the card is not known or the limit is no amount of memory.
    pub fn target(&self) -> Result<Option<Target>, Failure> {
        let limit = self.limit_gib.map(|gib| limit(gib, "--limit-gib")).transpose()?;
        Ok(match self.card()? {
            Some(card) => Some(match Room::limited(card, limit) {
                Room::Card(_) => Target::Card(card),
                Room::Allocator(limit) => Target::Limit(limit),
            }),
            None => limit.map(Target::Limit),
        })
    }

    /// What PyTorch's allocator can have of the card or limit that was named.
    ///
    /// # Errors
    /// As [`Self::target`].
    pub fn for_allocator(&self) -> Result<Option<Bytes>, Failure> {
        Ok(self.target()?.map(|target| match target {
            Target::Card(card) => outside::for_allocator(card, 1),
            Target::Limit(bytes) => bytes,
        }))
    }

    /// The same of each of several GPUs, on which communication has its buffers too.
    ///
    /// # Errors
    /// As [`Self::target`].
    pub fn for_allocator_of(&self, gpus: u64) -> Result<Option<Bytes>, Failure> {
        Ok(self.target()?.map(|target| match target {
            Target::Card(card) => outside::for_allocator(card, gpus),
            Target::Limit(bytes) => bytes,
        }))
    }

    /// What the named card holds outside PyTorch's allocator; the reference card, where none is named.
    ///
    /// # Errors
    /// When the card is not known.
    pub fn outside(&self) -> Result<Bytes, Failure> {
        Ok(outside::total(self.card_or_reference()?))
    }

    /// Whether a card was named.
    pub const fn names_card(&self) -> bool {
        self.gpu.is_some()
    }

    /// The shape of the named card; the reference card's, where none is named or it is not known.
    ///
    /// # Errors
    /// When the card is not known.
    pub fn gpu(&self) -> Result<Gpu, Failure> {
        Ok(self.card()?.and_then(Device::gpu).unwrap_or_default())
    }

    /// The named card; the reference card, where none is named.
    ///
    /// # Errors
    /// When the card is not known.
    pub fn card_or_reference(&self) -> Result<&'static Device, Failure> {
        match self.card()? {
            Some(card) => Ok(card),
            None => Device::by_name(REFERENCE).map_err(Failure::input),
        }
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
    let (card, memory) = (&found.card.name, found.card.memory().get() >> 30);
    let others: Vec<&str> = found.others.iter().map(|other| other.name.as_str()).collect();
    anstream::eprintln!(
        "note: {name} → {card}, {memory} GB, its most common board; also known: {}",
        others.join(", ")
    );
}

/// An amount of memory that was given in GiB under a name.
///
/// # Errors
/// When it is no amount of memory.
pub fn limit(gib: f64, name: &str) -> Result<Bytes, Failure> {
    // 2⁵⁰ bytes are beyond any device, and far within what a whole number can hold.
    if !(gib > 0.0 && gib <= 1_048_576.0) {
        return Err(Failure::Input(format!(
            "{name} {gib}: give what the allocator may reserve in GiB, above 0, such as 23.5"
        )));
    }
    Ok(Bytes::new((gib * f64::from(1 << 30)) as u64))
}

/// What is left of a limit without a margin in percent.
///
/// # Errors
/// When the margin is no part of it.
pub fn less_margin(limit: Bytes, percent: f64) -> Result<Bytes, Failure> {
    if !(0.0..=90.0).contains(&percent) {
        return Err(Failure::Input(format!(
            "--margin {percent}: give the percentage that stays free, from 0 to 90, such as 5"
        )));
    }
    Ok(vramscope_plan::less_margin(limit, percent))
}
