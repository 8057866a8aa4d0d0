//! Parses amounts of memory in text, such as `2.50 GiB` or `1,024 MB`.

use serde::{Deserialize, Serialize};

use vramscope_engine::units::Bytes;

/// An amount of memory as printed, possibly rounded: the true value lies within `error` of `bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    /// The printed value, in bytes.
    pub bytes: Bytes,
    /// Half a unit of the last printed digit; zero for an exact count of bytes.
    pub error: Bytes,
}

impl Amount {
    /// An exact count of bytes, without rounding error.
    pub const fn exact(bytes: Bytes) -> Self {
        Self {
            bytes,
            error: Bytes::ZERO,
        }
    }

    /// Smallest value that would print this way.
    pub const fn least(self) -> Bytes {
        self.bytes.saturating_sub(self.error)
    }

    /// Largest value that would print this way.
    pub fn most(self) -> Bytes {
        self.bytes + self.error
    }
}

/// Limit in bytes above which an amount is not taken for memory of a device. PyTorch prints `17179869184.00 GiB` (2⁶⁴
/// bytes) for a process whose memory the driver does not report, as in a container.
const TOO_MUCH: f64 = (1u64 << 50) as f64;

/// An amount and its position in a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub amount: Amount,
    pub begin: usize,
    pub end: usize,
}

/// Bytes of a unit, by its name. PyTorch, nvidia-smi and the tools around them divide by 1024 even when they write
/// `GB`.
pub(super) fn unit(name: &str) -> Option<f64> {
    let power = match name {
        "B" | "bytes" | "byte" => 0,
        "KiB" | "KB" | "kB" | "K" | "kib" | "kb" => 10,
        "MiB" | "MB" | "M" | "mib" | "mb" => 20,
        "GiB" | "GB" | "G" | "gib" | "gb" => 30,
        "TiB" | "TB" | "tib" | "tb" => 40,
        _ => return None,
    };
    Some((1u64 << power) as f64)
}

/// Parses an unsigned number at the start of a text: value, number of decimals, and bytes consumed. Commas may separate
/// thousands.
pub(super) fn number(text: &str) -> Option<(f64, u32, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    if end == 0 || end > 20 {
        return None;
    }
    while end <= 20 && bytes.get(end) == Some(&b',') && digits(end + 1) == 3 {
        end += 4;
    }
    let mut decimals = 0;
    if bytes.get(end) == Some(&b'.') {
        decimals = digits(end + 1).min(20);
        end += if decimals > 0 { 1 + decimals } else { 0 };
    }
    let plain: String = text[..end].chars().filter(|&c| c != ',').collect();
    Some((plain.parse().ok()?, decimals as u32, end))
}

/// The amount that a number with `decimals` digits after the point means in a unit of `unit` bytes; `None` if no device
/// holds that much.
pub(super) fn amount(value: f64, decimals: u32, unit: f64) -> Option<Amount> {
    let bytes = value * unit;
    if !(0.0..TOO_MUCH).contains(&bytes) {
        return None;
    }
    let last_digit = (0..decimals).fold(unit, |digit, _| digit / 10.0);
    let error = if unit > 1.0 { last_digit / 2.0 } else { 0.0 };
    Some(Amount {
        bytes: Bytes::new(bytes.round() as u64),
        error: Bytes::new(error as u64),
    })
}

/// Parses an amount at the start of a text, a number and a unit with at most one blank between, and returns it with the
/// number of bytes consumed.
pub(super) fn leading(text: &str) -> Option<(Option<Amount>, usize)> {
    let (value, decimals, len) = number(text)?;
    let rest = &text[len..];
    let blank = usize::from(rest.starts_with(' '));
    let word = &rest[blank..];
    let letters = word.bytes().take_while(u8::is_ascii_alphabetic).count();
    let unit = unit(&word[..letters])?;
    Some((amount(value, decimals, unit), len + blank + letters))
}

/// Returns every amount in a text, skipping those larger than any device.
pub(super) fn amounts(text: &str) -> Vec<Found> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let joined = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || matches!(bytes[at - 1], b'.' | b'_' | b'-'));
        if !bytes[at].is_ascii_digit() || joined {
            at += 1;
            continue;
        }
        match leading(&text[at..]) {
            Some((amount, len)) => {
                found.extend(amount.map(|amount| Found {
                    amount,
                    begin: at,
                    end: at + len,
                }));
                at += len;
            }
            None => at += number(&text[at..]).map_or(1, |(_, _, len)| len),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u64, u64)> {
        let found = amounts(text);
        found
            .iter()
            .map(|f| (f.amount.bytes.get(), f.amount.error.get()))
            .collect()
    }

    #[test]
    fn amounts_keep_how_exact_they_are() {
        assert_eq!(read("2.50 GiB"), [(2_684_354_560, 5_368_709)]);
        assert_eq!(read("tried 512 bytes, 1,024 B"), [(512, 0), (1024, 0)]);
        assert_eq!(
            read("12345MiB / 32510MiB"),
            [(12345 << 20, 1 << 19), (32510 << 20, 1 << 19)]
        );
    }

    #[test]
    fn what_no_device_holds_is_no_amount() {
        assert!(read("17179869184.00 GiB, 3 apples, v1.5GB, 99999999999999999999999 B").is_empty());
    }
}
