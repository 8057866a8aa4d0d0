//! Session: receives files one after another with the run they belong to, and diagnoses them together.

use std::ops::Range;

use vramscope_diagnose::snapshot::{By, Recording};
use vramscope_diagnose::{Context, Evidence, Piece, diagnose, read_to_look_at};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;
use vramscope_plan::WhatIf;

use super::answer::{Diagnosis, File};
use super::run::{Fix, SimulatedRun};

/// Maximum size of a file. Larger ones are for the command line: WebAssembly can address 4 GiB, and parsing takes up to
/// four times the file's size.
const LARGEST: u64 = 1 << 30;

/// Files, recordings and run received so far.
#[derive(Default)]
pub struct Session {
    /// File being received.
    open: Option<(String, Vec<u8>)>,
    files: Vec<File>,
    recordings: Vec<Recording>,
    run: Option<Result<SimulatedRun, String>>,
    /// Changes not tried yet.
    changes: Option<WhatIf>,
}

impl Session {
    /// Starts a file of about `size` bytes, unpacked; returns the reason if that is too large.
    pub fn begin(&mut self, name: &str, size: u64) -> Option<String> {
        let mut bytes = Vec::new();
        if size > LARGEST || bytes.try_reserve_exact(size as usize).is_err() {
            let refusal = format!(
                "{} MiB are more than a page can hold: `vramscope diagnose` in a terminal reads it",
                size >> 20
            );
            self.files.push((name.to_string(), Err(refusal.clone())));
            return Some(refusal);
        }
        self.open = Some((name.to_string(), bytes));
        None
    }

    /// Appends bytes to the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some((_, taken)) = &mut self.open {
            taken.extend_from_slice(bytes);
        }
    }

    /// Parses the file received.
    pub fn end(&mut self) {
        let Some((name, bytes)) = self.open.take() else { return };
        let read = read_to_look_at(&bytes).map_err(|refusal| refusal.to_string());
        let pieces = read.map(|(pieces, recordings)| {
            self.recordings.extend(recordings);
            pieces
        });
        self.files.push((name, pieces));
    }

    /// Sets the run's model and setup from JSON; an empty text clears it.
    pub fn know(&mut self, run: &str) {
        self.run = (!run.is_empty()).then(|| SimulatedRun::read(run));
        self.changes = self.known().map(|run| run.changes(self.room()));
    }

    fn known(&self) -> Option<&SimulatedRun> {
        self.run.as_ref()?.as_ref().ok()
    }

    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.files
            .iter()
            .filter_map(|(_, pieces)| pieces.as_ref().ok())
            .flatten()
    }

    /// Memory available to the run, according to the card or the error message.
    fn room(&self) -> Option<Room<'static>> {
        let told: Option<Bytes> = self.pieces().find_map(|piece| match &piece.evidence {
            Evidence::Oom(message) => Some(message.reserved_in_all()?.bytes + message.free?.bytes),
            _ => None,
        });
        self.known()?.room(told)
    }

    /// Returns the diagnosis of all files together, as JSON.
    pub fn answer(&self) -> String {
        let run = self.known();
        let context = Context {
            capacity: run.and_then(SimulatedRun::capacity),
            report: run.map(|run| &run.report),
        };
        let pieces: Vec<Piece> = self.pieces().cloned().collect();
        let findings = diagnose(&pieces, &context);
        let fault = self.run.as_ref().and_then(|run| run.as_ref().err());
        text(&Diagnosis::of(
            &self.files,
            (&findings, &pieces),
            &self.recordings,
            (run, fault.map(String::as_str)),
        ))
    }

    /// Tries the next change to the setup. Returns the number left and the change's effect; `None` if all are tried.
    pub fn try_next(&mut self) -> Option<String> {
        let changes = self.changes.as_mut()?;
        let tried = changes.next()?;
        Some(text(&(changes.len(), Fix::of(tried))))
    }

    /// Returns the limit, and measures applied one after another until the setup trains under it.
    pub fn ladder(&self) -> Option<String> {
        let (run, room) = (self.known()?, self.room()?);
        Some(text(&run.ladder(room)?))
    }

    /// Returns columns of a recording's curve.
    pub fn columns(&self, recording: usize, by_frame: bool, span: Range<u32>, most: u32) -> String {
        let by = if by_frame { By::Frame } else { By::Category };
        let recording = self.recordings.get(recording);
        text(&recording.map(|recording| recording.columns(by, span, most)))
    }

    /// Returns the allocations live after an event of a recording.
    pub fn instant(&self, recording: usize, event: u32) -> String {
        text(&self.recordings.get(recording).map(|recording| recording.instant(event)))
    }
}

/// Serializes plain data, which cannot fail.
fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const FULL: &[u8] = b"CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)";

    fn session(files: &[(&str, &[u8])]) -> Session {
        let mut session = Session::default();
        for (name, bytes) in files {
            assert_eq!(session.begin(name, bytes.len() as u64), None);
            bytes.chunks(50).for_each(|part| session.feed(part));
            session.end();
        }
        session
    }

    fn json(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn files_are_answered_together() {
        let session = session(&[("a.txt", FULL), ("b.txt", b" ")]);
        let answer = json(&session.answer());
        assert_eq!(answer["read"][0], json!(["a.txt", 0, "text"]));
        assert_eq!(answer["read"][1], json!(["a.txt", 1, "out-of-memory error"]));
        assert_eq!(answer["findings"][0]["quotes"][0]["line"], 1);
        assert_eq!(answer["refused"][0][0], "b.txt");
        assert_eq!(answer["findings"][0]["code"], "out-of-capacity");
        assert_eq!(answer["findings"][0]["title"]["key"], "t_out_of_capacity");
        let checks = answer["checks"].as_array().expect("a list");
        assert!(
            checks
                .iter()
                .any(|check| check["item"] == "9.lists/minutes/1" && check["is_done"] == true)
        );
    }

    #[test]
    fn a_named_run_has_fixes_and_a_ladder() {
        let mut session = session(&[("a.txt", FULL)]);
        let setup = json!({"batch": 4, "seq": 512});
        let run = json!({"model": "gpt2", "config": "", "gpu": "H100 SXM", "gpu_is_chosen": false, "setup": setup});
        session.know(&run.to_string());
        let answer = json(&session.answer());
        assert_eq!(answer["fault"], Value::Null);
        let steps = answer["findings"].to_string();
        assert!(!steps.contains("s_name_setup") && steps.contains("s_smaller_batch"));
        assert!(
            answer["simulated"]["columns"]
                .as_array()
                .is_some_and(|columns| columns.len() > 100)
        );
        let tried: Vec<Value> = std::iter::from_fn(|| session.try_next().map(|text| json(&text))).collect();
        let halved = tried
            .iter()
            .find(|tried| tried[1]["key"] == "batch" && tried[1]["value"] == "2");
        let halved = &halved.expect("half the batch")[1];
        assert!(halved["difference"].as_i64().is_some_and(|bytes| bytes < 0) && halved["step"] == "smaller-batch");
        assert_eq!(tried.last().expect("changes")[0], 0);
        // 21.5 + 1.89 GiB, as the error message says.
        let ladder = json(&session.ladder().expect("a ladder"));
        assert_eq!((ladder[0].as_u64().expect("bytes") as f64 / 1e7).round(), 2511.0);
        assert_eq!(ladder[1][0]["trains"], true);
        session.know("{}");
        assert!(json(&session.answer())["fault"].is_string());
        assert!(session.try_next().is_none() && session.ladder().is_none());
    }

    #[test]
    fn a_file_that_no_page_can_hold_is_sent_to_the_command_line() {
        let mut session = Session::default();
        let refusal = session.begin("big.pickle", 5 << 30).expect("too large");
        assert!(refusal.contains("vramscope diagnose"), "{refusal}");
        session.feed(b"x");
        session.end();
        assert_eq!(json(&session.answer())["refused"][0][1], refusal);
    }
}
