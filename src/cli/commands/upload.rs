//! `vramscope upload`: sends records to a server.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::commands::examples;
use crate::data_folder::data_folder;
use crate::failure::Failure;
use crate::input::source::Source;
use crate::output;
use crate::records::Checked;
use crate::upload::{Client, Destination, Keyring, Spool, Token, Trouble, Waiting};

/// Send records of `bench` to a server
///
/// Shows what will be sent and asks first. A record holds what was measured and on what: no names of
/// hosts, users, files or processes. What could not be sent waits in the user's data folder and goes with
/// the next upload. Sending a record twice stores it once.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Upload {
    /// Records to send, or - for standard input; without any, those that wait
    #[arg(value_name = "FILE", value_parser = Source::parse)]
    files: Vec<Source>,
    /// The server, such as https://vramscope.example
    #[arg(long, value_name = "URL")]
    to: Destination,
    /// Send without asking
    #[arg(long)]
    yes: bool,
    /// Print every byte that would be sent, one record a line, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// File with the token, readable by you alone
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Keep the token that was found in this user's keyring, for later uploads to this server
    #[arg(long)]
    keep_token: bool,
    /// Take this server's token out of the keyring; nothing is sent
    #[arg(long, conflicts_with_all = ["files", "keep_token", "dry_run"])]
    forget_token: bool,
    /// Certificates to trust in place of the usual authorities', as a PEM file
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// How often a record is tried again
    #[arg(long, value_name = "N", default_value = "4")]
    retries: u32,
    /// Seconds to wait for each answer
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

const EXAMPLES: &str = "  vramscope upload h200.json --to https://vramscope.example
      shows what will be sent, asks, sends
  vramscope upload h200.json --to https://vramscope.example --dry-run
      every byte that would be sent
  vramscope upload --to https://vramscope.example --yes
      what waits from earlier uploads

The token is read from VRAMSCOPE_TOKEN, from --token-file, from the user's keyring (--keep-token puts it
there; on Linux that is the kernel's, which forgets at a restart), or from vramscope/token in the user's
folder of settings; whoever runs the server makes one with `vramscope serve token add`.";

/// Largest size of a record in bytes.
const LARGEST_RECORD: u64 = 256 << 20;

impl Upload {
    /// An upload to this server with default timeouts.
    pub fn to(to: Destination, yes: bool) -> Self {
        Self {
            files: Vec::new(),
            to,
            yes,
            dry_run: false,
            token_file: None,
            keep_token: false,
            forget_token: false,
            ca: None,
            retries: 4,
            timeout: 60,
        }
    }

    /// Sends the records in the files, and those waiting in the spool.
    ///
    /// # Errors
    /// If a file is not a record, the person did not agree, or a record was not acknowledged.
    pub fn run(self) -> Result<(), Failure> {
        if self.forget_token {
            let said = match Keyring::open()?.forget(&self.to)? {
                true => "the keyring holds no token for this server any more\n",
                false => "the keyring held no token for this server\n",
            };
            return output::print(said);
        }
        if self.keep_token {
            self.keep()?;
        }
        let records = self.files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if self.dry_run {
            return records
                .iter()
                .try_for_each(|record| output::print(&format!("{}\n", record.text)));
        }
        self.send(&records)
    }

    /// Sends these records, and those waiting in the spool.
    ///
    /// # Errors
    /// If the person did not agree, or a record was not acknowledged.
    pub fn send(self, records: &[Checked]) -> Result<(), Failure> {
        let spool = open_spool()?;
        let (waiting, unreadable) = spool
            .waiting_for(&self.to)
            .map_err(|error| spool_failed(&spool, &error))?;
        for path in unreadable {
            anstream::eprintln!("{} is no record that waits, and is left where it is", path.display());
        }
        if records.is_empty() && waiting.is_empty() {
            return output::print(&format!("nothing waits to be sent to {}\n", self.to));
        }
        self.show(records, &waiting)?;
        if !self.yes && !agreed(self.files.contains(&Source::Stdin))? {
            return output::print("nothing was sent\n");
        }
        let token = Token::find(&self.to, self.token_file.as_deref())?;
        let timeout = Duration::from_secs(self.timeout);
        let client = Client::new(self.to.clone(), token, self.retries, timeout, self.ca.as_deref())?;
        // From here on all records are on disk, so nothing is lost if this process ends.
        for record in records {
            spool
                .put(&self.to, record)
                .map_err(|error| spool_failed(&spool, &error))?;
        }
        let (waiting, _) = spool
            .waiting_for(&self.to)
            .map_err(|error| spool_failed(&spool, &error))?;
        send_all(&client, &spool, waiting)
    }

    fn keep(&self) -> Result<(), Failure> {
        let token = Token::find(&self.to, self.token_file.as_deref())?.ok_or_else(|| {
            Failure::Input("there is no token to keep; put one into VRAMSCOPE_TOKEN or name a --token-file".into())
        })?;
        Keyring::open()?.keep(&self.to, &token)?;
        output::print(&format!("the keyring holds the token for {}\n", self.to))
    }

    fn show(&self, records: &[Checked], waiting: &[Waiting]) -> Result<(), Failure> {
        let mut text = format!("to {}:\n", self.to);
        for record in records {
            text += &shown(record)?;
        }
        let earlier = waiting
            .iter()
            .filter(|old| records.iter().all(|new| new.id != old.id))
            .count();
        if earlier > 0 {
            text += &format!("and {earlier} that could not be sent earlier\n");
        }
        output::print(&text)
    }
}

fn read(source: &Source) -> Result<Checked, Failure> {
    let mut text = Vec::new();
    source
        .open()?
        .take(LARGEST_RECORD)
        .read_to_end(&mut text)
        .map_err(|error| source.unreadable(&error))?;
    Checked::read(&text).map_err(|refused| Failure::Input(format!("{source}: {refused}")))
}

/// A record without its results, which are only counted.
fn shown(record: &Checked) -> Result<String, Failure> {
    let mut fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&record.text).map_err(Failure::broken)?;
    let mut counts = BTreeMap::new();
    for result in &record.record.results {
        *counts.entry(result.kernel.class.name()).or_insert(0) += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(class, n)| format!("{n} {class}")).collect();
    let entry = record.entry();
    let results = format!("{} with {} times: {}", entry.results, entry.measured, counts.join(", "));
    fields.insert("results".into(), results.into());
    let fields = serde_json::to_string_pretty(&fields).map_err(Failure::broken)?;
    let id = &record.id[..12];
    Ok(format!(
        "{fields}\n{} bytes, id {id}…; --dry-run prints every one of them\n",
        entry.bytes
    ))
}

fn agreed(stdin_is_a_record: bool) -> Result<bool, Failure> {
    if stdin_is_a_record || !io::stdin().is_terminal() {
        return Err(Failure::Input(
            "cannot ask for confirmation: standard input is not a terminal; --yes sends without asking".into(),
        ));
    }
    output::print("send this? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Failure::broken)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn open_spool() -> Result<Spool, Failure> {
    let data = data_folder()?;
    Spool::open(&data).map_err(|error| {
        Failure::Broken(format!(
            "cannot make {}: {error}; nothing was sent",
            data.join("spool").display()
        ))
    })
}

fn spool_failed(spool: &Spool, error: &io::Error) -> Failure {
    Failure::Broken(format!(
        "{}: {error}; nothing was uploaded; records that were queued there stay queued",
        spool.folder().display()
    ))
}

fn send_all(client: &Client, spool: &Spool, waiting: Vec<Waiting>) -> Result<(), Failure> {
    let all = waiting.len();
    let mut refused = Vec::new();
    for (sent, record) in waiting.iter().enumerate() {
        let id = &record.id[..record.id.len().min(12)];
        let told = |why: &str| anstream::eprintln!("{why}");
        match client.send(record, told) {
            Ok(acknowledged) => {
                spool.done(record).map_err(|error| spool_failed(spool, &error))?;
                let reason = acknowledged
                    .reason
                    .map(|reason| format!(": {reason}"))
                    .unwrap_or_default();
                let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
                output::print(&format!("{id}… {}{reason}\n", acknowledged.status))?;
            }
            Err(Trouble::Record(why)) => {
                let path = spool.put_aside(record).map_err(|error| spool_failed(spool, &error))?;
                refused.push(format!("{why}; it is kept as {}", path.display()));
            }
            Err(Trouble::Server(why)) => {
                return Err(Failure::Broken(format!(
                    "{why}\n{} of {all} records wait in {} and go with the next upload",
                    all - sent,
                    spool.folder().display()
                )));
            }
        }
    }
    io::stdout().flush()?;
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::Broken(refused.join("\n"))),
    }
}
