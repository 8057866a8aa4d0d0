//! Reads a recording line by line.

use std::io::{BufRead, Read};

use serde::Deserialize;

use super::components;
use super::error::RecordingError;
use super::fault::Fault;
use super::header::Header;
use super::limits::{MOST_BYTES, MOST_LINE};
use super::lines::{self, Tag};
use super::player::Player;
use super::run::{About, Assumed, Cue, Run};
use super::settings;
use crate::allocator::Options;
use crate::tape::{Gpu, Tape};

/// Most assumptions that are kept; a recording sums them up.
const MOST_ASSUMED: usize = 256;

/// Reads a recording that is unpacked, as it runs on `gpu`; on the card that it was made for, where none is given.
///
/// # Errors
/// When it is no recording, is cut, has another version, is too large, or a line is not as the format says; when the
/// card runs other kernels than the one that it was made for; when no step ran to its end.
pub fn read(input: impl BufRead, gpu: Option<Gpu>) -> Result<Run, RecordingError> {
    read_at_most(input, gpu, MOST_BYTES)
}

/// The same, of no more bytes than these.
pub(super) fn read_at_most(input: impl BufRead, gpu: Option<Gpu>, most: u64) -> Result<Run, RecordingError> {
    let mut lines = Lines {
        input: input.take(most + 1),
        number: 0,
        line: Vec::new(),
    };
    let Some(first) = lines.next()? else {
        return Err(RecordingError::NotARecording);
    };
    let header = Header::read(first)?;
    let mut reader = Reader::new(header, gpu)?;
    while !reader.ended {
        let number = lines.number + 1;
        let Some(line) = lines.next()? else {
            return Err(RecordingError::Cut { lines: lines.number });
        };
        reader.line(line).map_err(|fault| RecordingError::at(number, fault))?;
    }
    if lines.next()?.is_some_and(|line| !line.trim().is_empty()) {
        return Err(RecordingError::at(lines.number, Fault::Place));
    }
    reader.finish()
}

/// Lines of the input, each of bounded length.
struct Lines<R> {
    input: std::io::Take<R>,
    /// Of the last line that was read, from 1.
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The next line, without its end; none after the last.
    fn next(&mut self) -> Result<Option<&str>, RecordingError> {
        self.line.clear();
        let read = (&mut self.input).take(MOST_LINE).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| RecordingError::Unreadable {
            lines: self.number,
            why: error.to_string(),
        })?;
        if self.input.limit() == 0 {
            return Err(RecordingError::TooLarge);
        }
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let first = self.number == 1;
        if read as u64 == MOST_LINE && self.line.last() != Some(&b'\n') {
            return Err(match first {
                true => RecordingError::NotARecording,
                false => RecordingError::at(self.number, Fault::TooMuch("bytes")),
            });
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some(line)),
            Err(_) if first => Err(RecordingError::NotARecording),
            Err(_) => Err(RecordingError::at(self.number, Fault::Json("it is not UTF-8".into()))),
        }
    }
}

/// What was read so far.
struct Reader {
    header: Header,
    options: Options,
    player: Player,
    assumed: Vec<Assumed>,
    ended: bool,
}

fn json<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, Fault> {
    serde_json::from_str(line).map_err(|error| Fault::Json(error.to_string()))
}

impl Reader {
    fn new(header: Header, gpu: Option<Gpu>) -> Result<Self, RecordingError> {
        let own = header.gpu();
        let gpu = gpu.unwrap_or(own);
        if gpu.capability != own.capability {
            return Err(RecordingError::OtherCard {
                recorded: header.gpu.name.chars().take(60).collect(),
                has: own.capability.into(),
                asked: gpu.capability.into(),
            });
        }
        let tape = Tape::roomy(gpu);
        tape.set_workspace_sizes(settings::workspaces(&header.settings));
        Ok(Self {
            options: settings::options(&header.settings.alloc_conf)?,
            header,
            player: Player::new(tape),
            assumed: Vec::new(),
            ended: false,
        })
    }

    fn line(&mut self, line: &str) -> Result<(), Fault> {
        let Tag { t } = json(line)?;
        let player = &mut self.player;
        match &*t {
            "op" => player.operation(&json(line)?),
            "free" => player.free(&json(line)?),
            "why" => player.why(&json(line)?),
            "meta" => player.tables.meta(&json(line)?),
            "fn" => player.tables.operation(&json(line)?),
            "node" => player.tables.node(&json(line)?),
            "line" => player.tables.place(&json(line)?),
            "module" => player.tables.module(&player.tape, &json(line)?),
            "param" => player.param(&json(line)?),
            "mark" => player.mark(&json(line)?),
            "ask" => {
                player.ask(&json(line)?);
                Ok(())
            }
            "reset_peak" => {
                player.cue(Cue::ResetPeak);
                Ok(())
            }
            "empty_cache" => {
                player.cue(Cue::EmptyCache);
                Ok(())
            }
            "clear_cublas_workspaces" => {
                player.tape.clear_workspaces();
                Ok(())
            }
            "setting" => self.setting(&json(line)?),
            "assumed" => self.assume(&json(line)?),
            "end" => {
                self.ended = true;
                Ok(())
            }
            "header" => Err(Fault::Place),
            // Later recorders may say more.
            _ => Ok(()),
        }
    }

    /// An allocator that is set otherwise while it runs has the last of its settings.
    fn setting(&mut self, line: &lines::Setting) -> Result<(), Fault> {
        if let Some(conf) = &line.alloc_conf {
            self.options = settings::options(conf).map_err(|error| Fault::Json(error.to_string()))?;
        }
        Ok(())
    }

    fn assume(&mut self, line: &lines::Assumed) -> Result<(), Fault> {
        if self.assumed.len() < MOST_ASSUMED {
            let short = |text: &str| text.chars().take(200).collect();
            self.assumed.push(Assumed {
                what: short(&line.what),
                how: short(&line.how),
                count: line.count,
            });
        }
        Ok(())
    }

    fn finish(self) -> Result<Run, RecordingError> {
        let Self {
            header,
            options,
            player,
            assumed,
            ..
        } = self;
        let ids = |param: &super::tables::Param| Some((player.id_of(param.storage)?, param.trainable));
        let params = || player.tables.params.iter().filter(|param| !param.buffer);
        let parameters = params().filter_map(ids).collect();
        let count = |of: &dyn Fn(&super::tables::Param) -> bool| params().filter(|p| of(p)).map(|p| p.elements).sum();
        let (all, trainable) = (count(&|_| true), count(&|param| param.trainable));
        let model = player.tables.modules.first().map(|root| String::from(&*root.class));
        let steps = player.marks.finish();
        if steps.is_empty() {
            return Err(RecordingError::NoStep);
        }
        let end = player.tape.mark();
        let components = components::of(&player.tables.modules);
        let root = player.tables.modules.first().map(|root| root.scope);
        // What lives to the end dies with the player: that is no part of the run.
        let mut log = player.tape.clone().finish();
        let mut events = std::mem::take(&mut log.events);
        events.truncate(end);
        for (scope, component) in components {
            log.scopes[scope as usize].component = component;
        }
        components::name_losses(&mut log, &events, &steps, root);
        let about = About {
            model: model.unwrap_or_default(),
            header,
            steps: steps.len(),
            operations: player.operations,
            assumed,
            unknown: player.unknown.into_iter().collect(),
        };
        Ok(Run {
            about,
            cues: player.cues,
            streams: player.streams,
            options,
            log,
            events,
            steps,
            params: all,
            trainable,
            parameters,
        })
    }
}
