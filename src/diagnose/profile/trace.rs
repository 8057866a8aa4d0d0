//! Reads Chrome traces that `torch.profiler` exports, event by event, keeping only sums.
//!
//! Format: "Trace Event Format" (Chromium); what Kineto writes into it: `libkineto/src/output_json.cpp`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Op, Profile, Work};
use crate::log::Point;
use vramscope_engine::units::Bytes;

/// Sums up a trace, or the readable part of a truncated one. `None` if there are no events.
pub fn read(json: &[u8]) -> Option<Profile> {
    let mut sums = Sums::default();
    // Events before a syntax error are still valid.
    let _ = Document(&mut sums).deserialize(&mut serde_json::Deserializer::from_slice(json));
    (sums.events > 0).then(|| sums.profile())
}

/// Running sums over a trace. Times are in microseconds, as in the trace.
#[derive(Default)]
struct Sums {
    events: u64,
    /// Device time by name.
    device: HashMap<String, f64>,
    /// Host time by name, for operations that wait.
    host: HashMap<String, f64>,
    /// Intervals in which the device was busy.
    busy: Vec<(f64, f64)>,
    /// Number and interval of each `ProfilerStep#N`.
    steps: Vec<(u64, f64, f64)>,
    /// Device memory in use over time.
    memory: Vec<(f64, u64)>,
    begin: Option<f64>,
    end: f64,
}

/// Largest number of distinct names kept.
const MOST_NAMES: usize = 100_000;
/// Limit in bytes above which an amount is not taken for memory of a device.
const TOO_MUCH: f64 = (1u64 << 50) as f64;
/// Largest number of intervals kept; later ones are dropped.
const MOST_INTERVALS: usize = 20_000_000;

impl Sums {
    fn take(&mut self, event: &Event) {
        self.events += 1;
        let (name, begin) = (event.name.0.as_ref(), event.ts.0);
        if event.ph.0 == "i" && name == "[memory]" {
            self.allocation(event);
        }
        let (Some(begin), Some(length)) = (begin, event.dur.0) else {
            return;
        };
        if event.ph.0 != "X" || !(begin.is_finite() && length >= 0.0 && length.is_finite()) {
            return;
        }
        let on_device = matches!(
            event.cat.0.to_ascii_lowercase().as_str(),
            "kernel" | "gpu_memcpy" | "gpu_memset"
        );
        if on_device {
            add(&mut self.device, name, length);
            if self.busy.len() < MOST_INTERVALS {
                self.busy.push((begin, begin + length));
            }
        } else if let Some(number) = name.strip_prefix("ProfilerStep#") {
            if self.steps.len() < MOST_NAMES {
                self.steps.push((number.parse().unwrap_or(0), begin, begin + length));
            }
        } else if matches!(Work::of(name), Work::Data | Work::Wait) {
            add(&mut self.host, name, length);
        }
        self.begin = Some(self.begin.map_or(begin, |first| first.min(begin)));
        self.end = self.end.max(begin + length);
    }

    fn allocation(&mut self, event: &Event) {
        let args = &event.args;
        // Device type 0 is the host (`c10::DeviceType`).
        if args.device_type.0 == Some(0.0) {
            return;
        }
        if let (Some(at), Some(total)) = (event.ts.0, args.total_allocated.0)
            && self.memory.len() < MOST_INTERVALS
            && (0.0..TOO_MUCH).contains(&total)
        {
            self.memory.push((at, total as u64));
        }
    }

    fn profile(mut self) -> Profile {
        let wall = self.end - self.begin.unwrap_or(self.end);
        let device_total: f64 = self.device.values().sum();
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| (part / whole).min(1.0));
        let on_device = self.device.iter().map(|(name, &time)| Op {
            name: name.clone(),
            work: Work::of(name),
            host: None,
            device: share(time, device_total),
        });
        let on_host = self.host.iter().map(|(name, &time)| Op {
            name: name.clone(),
            work: Work::of(name),
            host: share(time, wall),
            device: None,
        });
        let mut profile = Profile {
            ops: on_device.chain(on_host).collect(),
            busy: share(covered(&mut self.busy), wall).filter(|_| device_total > 0.0),
            hot_spots: Vec::new(),
            memory: self.memory_by_step(),
        };
        // Sort by name first, so that ties do not depend on the hash map's order.
        profile.ops.sort_by(|a, b| a.name.cmp(&b.name));
        profile.sort();
        profile
    }

    /// Peak memory of each step; without step marks, of ten equal parts.
    fn memory_by_step(&mut self) -> Vec<Point> {
        self.memory.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(&(first, _)), Some(&(last, _))) = (self.memory.first(), self.memory.last()) else {
            return Vec::new();
        };
        let mut steps = std::mem::take(&mut self.steps);
        if steps.len() < 2 {
            let part = (last - first) / 10.0;
            steps = (0..10u32)
                .map(|i| {
                    (
                        u64::from(i) + 1,
                        first + part * f64::from(i),
                        first + part * f64::from(i + 1),
                    )
                })
                .collect();
        }
        steps.sort_by(|a, b| a.1.total_cmp(&b.1));
        let highest = |&(step, begin, end): &(u64, f64, f64)| {
            let from = self.memory.partition_point(|&(at, _)| at < begin);
            let to = self.memory.partition_point(|&(at, _)| at <= end);
            let bytes = self.memory.get(from..to)?.iter().map(|&(_, bytes)| bytes).max()?;
            Some(Point {
                step,
                bytes: Bytes::new(bytes),
                length: None,
            })
        };
        steps.iter().filter_map(highest).collect()
    }
}

fn add(sums: &mut HashMap<String, f64>, name: &str, length: f64) {
    if let Some(sum) = sums.get_mut(name) {
        *sum += length;
    } else if sums.len() < MOST_NAMES {
        sums.insert(name.to_string(), length);
    }
}

/// Length of the union of intervals.
fn covered(intervals: &mut [(f64, f64)]) -> f64 {
    intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut reached) = (0.0, f64::NEG_INFINITY);
    for &(begin, end) in &*intervals {
        if end > reached {
            sum += end - begin.max(reached);
            reached = end;
        }
    }
    sum
}

/// The fields of an event that are read.
#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    ph: Text<'a>,
    #[serde(borrow)]
    cat: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    ts: Number,
    dur: Number,
    args: Args,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Args {
    #[serde(rename = "Device Type")]
    device_type: Number,
    #[serde(rename = "Total Allocated")]
    total_allocated: Number,
}

/// A text; any other JSON type reads as an empty text.
#[derive(Default)]
struct Text<'a>(Cow<'a, str>);

/// A number; any other JSON type reads as `None`.
#[derive(Default)]
struct Number(Option<f64>);

/// Implements `Deserialize` for a type that accepts some JSON types and ignores all others.
macro_rules! lenient {
    ($type:ty, [$($generics:tt)*], $value:ty, { $($visit:item)* }) => {
        impl<$($generics)*> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Lenient;
                impl<'de> Visitor<'de> for Lenient {
                    type Value = $value;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("any value")
                    }
                    fn visit_unit<E>(self) -> Result<Self::Value, E> {
                        Ok(Default::default())
                    }
                    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                        Ok(Default::default())
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        Ok(Default::default())
                    }
                    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                        while seq.next_element::<IgnoredAny>()?.is_some() {}
                        Ok(Default::default())
                    }
                    $($visit)*
                }
                deserializer.deserialize_any(Lenient)
            }
        }
    };
}

lenient!(Text<'a>, ['de: 'a, 'a], Text<'de>, {
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_string())))
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Text::default())
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Text::default())
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Text::default())
    }
});

lenient!(Number, ['de], Number, {
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Number(None))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Number(Some(value as f64)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Number(Some(value as f64)))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Number(Some(value)))
    }
});

/// The whole document: an object with `traceEvents`, or an array of events.
struct Document<'s>(&'s mut Sums);
/// The array of events.
struct Events<'s>(&'s mut Sums);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            if key == "traceEvents" {
                map.next_value_seed(Events(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        Events(self.0).visit_seq(seq)
    }
}

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<Event>()? {
            self.0.take(&event);
        }
        Ok(())
    }
}
