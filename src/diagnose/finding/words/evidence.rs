//! Phrases for the numbers that support a finding.

use super::{Gap, Sentence, bytes, percent, sentence, sentence_with};
use crate::finding::{Cause, Growth, Holder};
use crate::oom::{Asker, Site};
use crate::snapshot::Group;
use vramscope_engine::format::{difference, share};
use vramscope_engine::units::Bytes;

/// The numbers that support a cause, one sentence each.
pub fn evidence(cause: &Cause) -> Vec<Sentence> {
    match cause {
        Cause::Known { why, .. } => why.clone(),
        Cause::OutOfCapacity { .. }
        | Cause::OtherProcesses { .. }
        | Cause::Limit { .. }
        | Cause::RefusedThoughFree { .. }
        | Cause::OutsideTheCache { .. }
        | Cause::HostMemory { .. }
        | Cause::NoNumbers
        | Cause::Site(_) => failed_request(cause),
        Cause::Fragmentation { .. } | Cause::ExpandableSegments { .. } | Cause::PrivatePools { .. } => allocator(cause),
        Cause::AttentionMatrix { .. } | Cause::Logits { .. } | Cause::Tensors { .. } => shapes(cause),
        Cause::Retries { .. }
        | Cause::NearlyFull { .. }
        | Cause::Utilization { .. }
        | Cause::Leak(_)
        | Cause::NoLeak { .. }
        | Cause::LongSample { .. } => counters(cause),
        Cause::DataLoading { .. }
        | Cause::Communication { .. }
        | Cause::Copies { .. }
        | Cause::Idle { .. }
        | Cause::AttentionTime { .. }
        | Cause::HotSpots { .. } => profile(cause),
        Cause::Peak { .. } | Cause::NeverFreed { .. } | Cause::Unforeseen { .. } => recorded(cause),
    }
}

/// Sentences about a request that failed.
fn failed_request(cause: &Cause) -> Vec<Sentence> {
    let asked = |request: &Bytes| sentence("e_asked", [bytes(*request)]);
    match cause {
        Cause::OutOfCapacity {
            request,
            total,
            free,
            allocated,
            reserved,
            devices,
        } => capacity([*request, *total, *free, *allocated, *reserved], devices),
        Cause::OtherProcesses {
            total,
            held,
            own,
            processes,
        } => others(*total, *held, *own, processes),
        Cause::Limit {
            allowed,
            reserved,
            request,
            ..
        } => {
            let taken = reserved.map(|reserved| sentence("e_taken", [bytes(reserved)]));
            let limit = sentence("e_limit", [bytes(*allowed)]);
            let lines = [Some(limit), taken, request.as_ref().map(asked)];
            lines.into_iter().flatten().collect()
        }
        Cause::RefusedThoughFree { request, free } => vec![sentence("e_refused", [bytes(*request), bytes(*free)])],
        Cause::OutsideTheCache { asker } => {
            let key = match asker {
                Asker::Nccl => "e_nccl",
                Asker::Cublas | Asker::Cudnn => "e_library",
                _ => "e_driver",
            };
            vec![sentence(key, [])]
        }
        Cause::HostMemory { request } => request.iter().map(asked).collect(),
        Cause::NoNumbers => vec![sentence("e_no_numbers", [])],
        Cause::Site(site) => vec![sentence(of_site(*site), [])],
        _ => Vec::new(),
    }
}

/// Sentences about causes inside the allocator.
fn allocator(cause: &Cause) -> Vec<Sentence> {
    match cause {
        Cause::Fragmentation {
            reserved,
            unallocated,
            share,
            request,
            free,
        } => {
            let held = reserved.saturating_sub(*unallocated);
            let gaps = [bytes(*reserved), bytes(held), percent(*share), bytes(*unallocated)];
            let together = request.zip(*free).map(|(request, free)| {
                let sum = *unallocated + free;
                let key = if sum >= request { "e_enough" } else { "e_not_enough" };
                sentence(key, [bytes(free), bytes(sum), bytes(request)])
            });
            [Some(sentence("e_share", gaps)), together]
                .into_iter()
                .flatten()
                .collect()
        }
        Cause::ExpandableSegments {
            reserved,
            expandable,
            serves,
        } => {
            let saved = difference(expandable.difference_to(*reserved));
            let played = sentence("e_expandable", [bytes(*reserved), bytes(*expandable), saved]);
            let served = serves.map(|serves| sentence(if serves { "e_serves" } else { "e_serves_not" }, []));
            [Some(played), served].into_iter().flatten().collect()
        }
        Cause::PrivatePools {
            bytes: pools,
            allocated,
        } => vec![match allocated {
            Some(all) => sentence("e_pools_of", [bytes(*pools), bytes(*all), share(*pools, *all)]),
            None => sentence("e_pools", [bytes(*pools)]),
        }],
        _ => Vec::new(),
    }
}

/// Sentences about shapes of the request's size.
fn shapes(cause: &Cause) -> Vec<Sentence> {
    let whole = |request: Bytes| sentence("e_whole", [bytes(request)]);
    match cause {
        Cause::AttentionMatrix { request, shapes } => shapes
            .iter()
            .map(|s| {
                let size = Bytes::new(s.batch * s.heads * s.length * s.length * s.width);
                let sides = [s.batch, s.heads, s.length, s.width].map(|side| side.to_string());
                sentence_with("e_attention", sides.into_iter().chain([bytes(size)]).map(Gap::Text))
            })
            .chain([whole(*request)])
            .collect(),
        Cause::Logits { request, shapes } => shapes
            .iter()
            .map(|s| {
                let size = Bytes::new(s.tokens * s.vocab * s.width);
                let sides = [s.tokens, s.vocab, s.width].map(|side| side.to_string());
                sentence_with("e_logits", sides.into_iter().chain([bytes(size)]).map(Gap::Text))
            })
            .chain([whole(*request)])
            .collect(),
        Cause::Tensors { tensors, .. } => tensors
            .iter()
            .map(|t| {
                let sides: Vec<String> = t.shape.iter().map(u64::to_string).collect();
                let what = format!("{} [{}] {}", t.name, sides.join(", "), t.dtype.name());
                sentence("e_tensor", [what, t.layer.to_string(), bytes(t.bytes)])
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Sentences about counters over the run.
fn counters(cause: &Cause) -> Vec<Sentence> {
    match cause {
        Cause::Retries { ooms, retries } => vec![sentence("e_retries", [ooms.to_string(), retries.to_string()])],
        Cause::NearlyFull { device, used, total } => vec![sentence(
            "e_nearly_full",
            [device.to_string(), bytes(*used), bytes(*total), share(*used, *total)],
        )],
        Cause::Utilization { device, mean, readings } => vec![sentence(
            "e_utilization",
            [device.to_string(), percent(*mean), readings.to_string()],
        )],
        Cause::Leak(growth) => leak(growth),
        Cause::NoLeak { growth, readings } => {
            let sign = if *growth < 0.0 { "−" } else { "+" };
            let growth = format!("{sign}{}", percent(growth.abs()));
            vec![sentence("e_no_leak", [growth, readings.to_string()])]
        }
        Cause::LongSample {
            step,
            bytes: most,
            usual,
            length,
        } => {
            let length = length.map(|length| sentence("e_length", [length.to_string()]));
            let needs = sentence("e_long_sample", [step.to_string(), bytes(*most), bytes(*usual)]);
            [Some(needs), length].into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Sentences about a profile of the run.
fn profile(cause: &Cause) -> Vec<Sentence> {
    match cause {
        Cause::DataLoading { share } => vec![sentence("e_data", [percent(*share)])],
        Cause::Communication { share } => vec![sentence("e_communication", [percent(*share)])],
        Cause::Copies { share } => vec![sentence("e_copies", [percent(*share)])],
        Cause::Idle { busy } => vec![sentence("e_busy", [percent(*busy)])],
        Cause::AttentionTime { share } => vec![sentence("e_attention_time", [percent(*share)])],
        Cause::HotSpots { spots } => spots
            .iter()
            .map(|spot| sentence("e_spot", [spot.name.clone(), bytes(spot.bytes)]))
            .collect(),
        _ => Vec::new(),
    }
}

/// Sentences about a recording of every allocation.
fn recorded(cause: &Cause) -> Vec<Sentence> {
    match cause {
        Cause::Peak {
            peak,
            by_category,
            largest,
        } => {
            let categories = by_category
                .iter()
                .map(|(category, held)| sentence_with("e_category", [Gap::from(*category), bytes(*held).into()]));
            let live = std::iter::once(sentence("e_live", [bytes(*peak)]));
            live.chain(categories).chain(largest.iter().map(group)).collect()
        }
        Cause::NeverFreed { bytes: all, groups } => {
            let all = std::iter::once(sentence("e_never_freed", [bytes(*all)]));
            all.chain(groups.iter().take(5).map(group)).collect()
        }
        Cause::Unforeseen { recorded, simulated } => {
            let more = difference(recorded.difference_to(*simulated));
            vec![sentence("e_unforeseen", [bytes(*recorded), bytes(*simulated), more])]
        }
        _ => Vec::new(),
    }
}

/// Stack and bytes of a group of allocations, in one sentence.
fn group(group: &Group) -> Sentence {
    let mut gaps = vec![
        Gap::Text(bytes(group.bytes)),
        Gap::from(group.category),
        Gap::Text(group.count.to_string()),
    ];
    if group.stack.is_empty() {
        return sentence_with("e_group_bare", gaps);
    }
    gaps.push(Gap::Text(group.stack.join(" < ")));
    sentence_with("e_group", gaps)
}

fn capacity([request, total, free, allocated, reserved]: [Option<Bytes>; 5], devices: &[u32]) -> Vec<Sentence> {
    let mut lines = Vec::new();
    if devices.len() > 1 {
        let mut devices = devices.to_vec();
        devices.sort_unstable();
        let names: Vec<String> = devices.iter().map(u32::to_string).collect();
        lines.push(sentence("e_devices", [names.len().to_string(), names.join(", ")]));
    }
    match (request, free) {
        (Some(request), Some(free)) => {
            let missing = request.saturating_sub(free);
            lines.push(sentence("e_missing", [bytes(request), bytes(free), bytes(missing)]));
        }
        (Some(request), None) => lines.push(sentence("e_asked", [bytes(request)])),
        _ => {}
    }
    if let (Some(total), Some(allocated)) = (total, allocated) {
        lines.push(sentence(
            "e_tensors_hold",
            [bytes(allocated), bytes(total), share(allocated, total)],
        ));
    }
    if let (Some(total), None) = (total, allocated) {
        lines.push(sentence("e_card_has", [bytes(total)]));
    }
    if let (Some(total), Some(free), Some(reserved)) = (total, free, reserved) {
        let outside = total.saturating_sub(free).saturating_sub(reserved);
        lines.push(sentence("e_outside", [bytes(outside)]));
    }
    if request.is_some_and(|request| request <= Bytes::mib(20)) {
        lines.push(sentence("e_small", []));
    }
    lines
}

fn others(total: Option<Bytes>, held: Bytes, own: Option<Bytes>, processes: &[Holder]) -> Vec<Sentence> {
    let mut lines = vec![match total {
        Some(total) => sentence("e_others_hold", [bytes(held), bytes(total), share(held, total)]),
        None => sentence("e_others", [bytes(held)]),
    }];
    lines.extend(own.map(|own| sentence("e_own", [bytes(own)])));
    if processes.is_empty() {
        lines.push(sentence("e_unlisted", []));
    }
    lines.extend(processes.iter().take(8).map(|process| {
        let name = process
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!(" ({name})"));
        sentence("e_process", [format!("{}{name}", process.pid), bytes(process.bytes)])
    }));
    lines
}

const fn of_site(site: Site) -> &'static str {
    match site {
        Site::Load => "e_site_load",
        Site::Vision => "e_site_vision",
        Site::Attention => "e_site_attention",
        Site::Loss => "e_site_loss",
        Site::Forward => "e_site_forward",
        Site::Backward => "e_site_backward",
        Site::OptimizerStates => "e_site_states",
        Site::Optimizer => "e_site_optimizer",
    }
}

fn leak(growth: &Growth) -> Vec<Sentence> {
    let per_step = Bytes::new(growth.per_step.max(0.0) as u64);
    let rise = growth.last.get() as f64 / growth.first.get().max(1) as f64 - 1.0;
    let gaps = [
        bytes(growth.first),
        bytes(growth.last),
        growth.steps.to_string(),
        per_step.to_string(),
        percent(rise),
    ];
    let rises = growth.rises.iter();
    let rises: Vec<String> = rises
        .map(|rise| format!("{:+.2}", *rise as f64 / (1u64 << 30) as f64))
        .collect();
    let how = if growth.is_accelerating {
        "e_rises_faster"
    } else {
        "e_rises"
    };
    let mut lines = vec![
        sentence("e_growth", gaps),
        sentence(how, [rises.join(" ")]),
        sentence("e_ahead", [growth.readings.to_string(), bytes(growth.predicted)]),
    ];
    if let (Some(total), Some(risk)) = (growth.total, growth.risk) {
        let gaps = [share(growth.predicted, total), bytes(total), format!("{risk:.2}")];
        lines.push(sentence("e_risk", gaps));
    }
    if let Some(step) = growth.full_at {
        let key = if growth.is_accelerating {
            "e_full_sooner"
        } else {
            "e_full_at"
        };
        lines.push(sentence(key, [step.to_string()]));
    }
    lines
}
