use super::{bytes, percent};
use crate::diagnose::finding::{Cause, Growth, Holder};
use crate::diagnose::oom::{Asker, Site};
use crate::diagnose::snapshot::Group;
use crate::format::{difference, share};
use crate::units::Bytes;

/// The numbers that show a finding, one sentence each.
pub fn evidence(cause: &Cause) -> Vec<String> {
    match cause {
        Cause::OutOfCapacity { request, total, free, allocated, reserved } => {
            capacity([*request, *total, *free, *allocated, *reserved])
        }
        Cause::OtherProcesses { total, held, own, processes } => others(*total, *held, *own, processes),
        Cause::Fragmentation { reserved, unallocated, share, request, free } => {
            let mut lines = vec![format!(
                "PyTorch keeps {} and tensors hold {}: 1 − allocated ÷ reserved = {} ({}). Above 20% is worth acting on.",
                bytes(*reserved),
                bytes(reserved.saturating_sub(*unallocated)),
                percent(*share),
                bytes(*unallocated),
            )];
            if let (Some(request), Some(free)) = (request, free) {
                let sum = *unallocated + *free;
                let verdict = if sum >= *request { "would be enough" } else { "would not be enough either" };
                lines.push(format!(
                    "With the {} that the card has free that makes {}: {verdict} for the {} asked for.",
                    bytes(*free),
                    bytes(sum),
                    bytes(*request)
                ));
            }
            lines
        }
        Cause::Limit { allowed, reserved, request, .. } => {
            let mut line = format!("The limit is {}", bytes(*allowed));
            line += &reserved.map_or_else(String::new, |reserved| format!(", {} are taken", bytes(reserved)));
            line += &request.map_or_else(String::new, |request| format!(", {} more were asked for", bytes(request)));
            vec![line + "."]
        }
        Cause::RefusedThoughFree { request, free } => vec![format!(
            "{} were asked for and {} were free. Another process may have freed them since, or a limit outside PyTorch holds: a container, MIG, WSL.",
            bytes(*request),
            bytes(*free)
        )],
        Cause::OutsideTheCache { asker } => vec![match asker {
            Asker::Nccl => "NCCL takes buffers of its own for each communicator, about 0.85 GiB on two GPUs, beside PyTorch's cache.".into(),
            Asker::Cublas | Asker::Cudnn => "The library asks the driver when its handle is made, and PyTorch's cache may hold all that is left.".into(),
            _ => "The driver was asked directly: for a context, a kernel's stack, or by a library.".into(),
        }],
        Cause::HostMemory { request } => request.iter().map(|request| format!("{} were asked for.", bytes(*request))).collect(),
        Cause::NoNumbers => vec!["Only the words are there: how much was asked for, free and held is missing.".into()],
        Cause::PrivatePools { bytes: pools, allocated } => vec![match allocated {
            Some(all) => format!("{} of the {} that tensors hold are in private pools ({}).", bytes(*pools), bytes(*all), share(*pools, *all)),
            None => format!("{} are in private pools.", bytes(*pools)),
        }],
        Cause::Site(site) => vec![site_evidence(*site).into()],
        Cause::AttentionMatrix { request, shapes } => shapes
            .iter()
            .map(|s| format!(
                "batch {} × {} heads × {}² positions × {} bytes = {}",
                s.batch, s.heads, s.length, s.width,
                bytes(Bytes::new(s.batch * s.heads * s.length * s.length * s.width)),
            ))
            .chain([format!("PyTorch asks the driver for whole 2 MiB: {} are asked for.", bytes(*request))])
            .collect(),
        Cause::Logits { request, shapes } => shapes
            .iter()
            .map(|s| format!(
                "{} positions × vocabulary {} × {} bytes = {}",
                s.tokens, s.vocab, s.width,
                bytes(Bytes::new(s.tokens * s.vocab * s.width)),
            ))
            .chain([format!("PyTorch asks the driver for whole 2 MiB: {} are asked for.", bytes(*request))])
            .collect(),
        Cause::Tensors { tensors, .. } => tensors
            .iter()
            .map(|t| {
                let sides: Vec<String> = t.shape.iter().map(u64::to_string).collect();
                format!("{} [{}] {} in {}: {}", t.name, sides.join(", "), t.dtype.name(), t.layer, bytes(t.bytes))
            })
            .collect(),
        Cause::Retries { ooms, retries } => vec![format!(
            "{ooms} requests failed, and {retries} times the whole cache was given back to serve one, which stops the GPU."
        )],
        Cause::NearlyFull { device, used, total } => vec![format!(
            "GPU {device}: {} of {} in use at most ({}). PyTorch's cache counts as used, whether tensors hold it or not.",
            bytes(*used), bytes(*total), share(*used, *total)
        )],
        Cause::Utilization { device, mean, readings } => vec![format!(
            "GPU {device}: {:.0}% in the mean of {readings} reading{}. Above 95% is excellent, 85 to 95% good, 70 to 85% fair, below 70% low.",
            mean * 100.0,
            if *readings == 1 { "" } else { "s" }
        )],
        Cause::Leak(growth) => leak(growth),
        Cause::NoLeak { growth, readings } => vec![format!(
            "{}{} over the last {readings} readings. A leak grows by more than 5% within ten, and goes on.",
            if *growth < 0.0 { "−" } else { "+" },
            percent(growth.abs())
        )],
        Cause::LongSample { step, bytes: most, usual, length } => {
            let length = length.map_or_else(String::new, |length| format!(" with a sample of {length} positions"));
            vec![format!("Step {step} needs {}{length}; the median is {}.", bytes(*most), bytes(*usual))]
        }
        Cause::DataLoading { share } => vec![format!("{} of the host's time goes to the data loader, and the GPU has nothing to do meanwhile.", percent(*share))],
        Cause::Communication { share } => vec![format!("{} of the GPU's time goes to communication between GPUs.", percent(*share))],
        Cause::Copies { share } => vec![format!("{} of the GPU's time goes to copies.", percent(*share))],
        Cause::Idle { busy } => vec![format!("It runs something in {} of the time.", percent(*busy))],
        Cause::AttentionTime { share } => vec![format!("{} of the GPU's time.", percent(*share))],
        Cause::HotSpots { spots } => spots.iter().map(|spot| format!("{}: {}", spot.name, bytes(spot.bytes))).collect(),
        Cause::Peak { peak, by_category, largest } => {
            let parts: Vec<String> = by_category.iter().map(|(category, held)| format!("{} {}", category.label(), bytes(*held))).collect();
            let mut lines = vec![format!("{} live: {}.", bytes(*peak), parts.join(", "))];
            lines.extend(largest.iter().map(group));
            lines
        }
        Cause::NeverFreed { bytes: all, groups } => {
            let mut lines = vec![format!("{} in all, without weights, gradients and optimizer states.", bytes(*all))];
            lines.extend(groups.iter().take(5).map(group));
            lines
        }
        Cause::ExpandableSegments { reserved, expandable, serves } => {
            let mut lines = vec![format!(
                "The recording's requests, played through the simulated allocator: {} reserved at most; with expandable segments {} ({}).",
                bytes(*reserved), bytes(*expandable), difference(expandable.difference_to(*reserved))
            )];
            match serves {
                Some(true) => lines.push("The request that failed finds room then.".into()),
                Some(false) => lines.push("The request that failed finds no room then either.".into()),
                None => {}
            }
            lines
        }
        Cause::Unforeseen { recorded, simulated } => vec![format!(
            "The recording peaks at {}, the simulated step of this model and setup at {}: {}.",
            bytes(*recorded), bytes(*simulated), difference(recorded.difference_to(*simulated))
        )],
    }
}

/// Where something was made, and how much.
fn group(group: &Group) -> String {
    let times = if group.count > 1 {
        format!(" in {} blocks", group.count)
    } else {
        String::new()
    };
    let place = match group.stack.as_slice() {
        [] => "no Python stack, as in backward".to_string(),
        stack => stack.join(" < "),
    };
    format!("{} of {}{times}: {place}", bytes(group.bytes), group.category.label())
}

fn capacity([request, total, free, allocated, reserved]: [Option<Bytes>; 5]) -> Vec<String> {
    let mut lines = Vec::new();
    match (request, free) {
        (Some(request), Some(free)) => lines.push(format!(
            "{} were asked for and {} were free: {} were missing.",
            bytes(request),
            bytes(free),
            bytes(request.saturating_sub(free))
        )),
        (Some(request), None) => lines.push(format!("{} were asked for.", bytes(request))),
        _ => {}
    }
    if let (Some(total), Some(allocated)) = (total, allocated) {
        lines.push(format!(
            "Tensors hold {} of the card's {} ({}).",
            bytes(allocated),
            bytes(total),
            share(allocated, total)
        ));
    }
    if let (Some(total), Some(free), Some(reserved)) = (total, free, reserved) {
        let outside = total.saturating_sub(free).saturating_sub(reserved);
        lines.push(format!(
            "{} lie outside PyTorch: the CUDA context, libraries, other processes.",
            bytes(outside)
        ));
    }
    if request.is_some_and(|request| request <= Bytes::mib(20)) {
        lines.push("So small a request fails when the card was full before: look at what holds the memory, not at this tensor.".into());
    }
    lines
}

fn others(total: Option<Bytes>, held: Bytes, own: Option<Bytes>, processes: &[Holder]) -> Vec<String> {
    let mut line = match total {
        Some(total) => format!(
            "They hold {} of the card's {} ({})",
            bytes(held),
            bytes(total),
            share(held, total)
        ),
        None => format!("They hold {}", bytes(held)),
    };
    if let Some(own) = own {
        line += &format!("; this process holds {}", bytes(own));
    }
    let mut lines = vec![line + "."];
    if processes.is_empty() {
        lines.push("The message does not list them: this is what is neither free nor PyTorch's.".into());
    }
    lines.extend(processes.iter().take(8).map(|process| {
        let name = process
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!(" ({name})"));
        format!("Process {}{name}: {}", process.pid, bytes(process.bytes))
    }));
    lines
}

fn site_evidence(site: Site) -> &'static str {
    match site {
        Site::Load => {
            "The traceback ends in loading or moving the model: weights alone do not fit beside what is there."
        }
        Site::Vision => {
            "The traceback passes through the vision tower: image tokens grow with the square of the side of an image."
        }
        Site::Attention => "The traceback ends in attention: its matrix grows with the square of the length.",
        Site::Loss => {
            "The traceback ends at the loss: logits are positions × vocabulary, in fp32 and once more in the model's type."
        }
        Site::Forward => "The traceback ends in forward: what backward needs is being kept.",
        Site::Backward => {
            "The traceback passes through backward: gradients are added while activations are still there."
        }
        Site::OptimizerStates => {
            "The traceback ends where states are made: AdamW keeps two numbers for each trained parameter, from the first step on."
        }
        Site::Optimizer => {
            "The traceback passes through the optimizer: AdamW's default form holds temporaries of the size of the parameters."
        }
    }
}

fn leak(growth: &Growth) -> Vec<String> {
    let per_step = Bytes::new(growth.per_step.max(0.0) as u64);
    let mut lines = vec![format!(
        "{} to {} in {} steps: +{} a step ({}).",
        bytes(growth.first),
        bytes(growth.last),
        growth.steps,
        per_step,
        percent(growth.last.get() as f64 / growth.first.get().max(1) as f64 - 1.0),
    )];
    let rises: Vec<String> = growth
        .rises
        .iter()
        .map(|rise| format!("{:+.2}", *rise as f64 / (1u64 << 30) as f64))
        .collect();
    let how = if growth.is_accelerating {
        "faster and faster"
    } else {
        "evenly"
    };
    lines.push(format!("From reading to reading, in GiB: {}: {how}.", rises.join(" ")));
    let ahead = format!(
        "The regression over the last {} readings expects {} ten readings later",
        growth.readings,
        bytes(growth.predicted)
    );
    lines.push(match (growth.total, growth.risk) {
        (Some(total), Some(risk)) => format!(
            "{ahead}, {} of the card's {}: risk {risk:.2} (act above 0.3, 0.5, 0.8).",
            share(growth.predicted, total),
            bytes(total)
        ),
        _ => format!("{ahead}."),
    });
    if let Some(step) = growth.full_at {
        let sooner = if growth.is_accelerating {
            ", sooner as it accelerates"
        } else {
            ""
        };
        lines.push(format!("The card is full at about step {step}{sooner}."));
    }
    lines
}
