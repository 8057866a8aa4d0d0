//! Kills the server while records arrive: every acknowledged record is in the database afterwards, exactly once.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Server, get, on_both, record};

/// Number of rounds; `VRAMSCOPE_CRASH_ROUNDS=100 cargo nextest run -p vramscope --test server crash` runs more.
fn rounds() -> u64 {
    let given = std::env::var("VRAMSCOPE_CRASH_ROUNDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(3)
}

on_both! {
    fn what_was_acknowledged_outlives_a_kill(database: &str) {
        let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
        let number = Arc::new(AtomicU64::new(0));
        let mut token = None;
        for round in 0..rounds() {
            let server = Server::start(database);
            let token = token.get_or_insert_with(|| server.token("write")).clone();
            let senders: Vec<_> = (0..8)
                .map(|_| {
                    let (acknowledged, number) = (Arc::clone(&acknowledged), Arc::clone(&number));
                    let (address, token) = (server.address, token.clone());
                    std::thread::spawn(move || send_until_gone(address, &token, &number, &acknowledged))
                })
                .collect();
            // Wait for an acknowledgement, however slow the machine is, then for a different time in each round.
            let count = || acknowledged.lock().expect("no sender broke").len() as u64;
            let begun = count();
            while count() < begun + 3 {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(37 * (round % 11)));
            server.kill();
            senders.into_iter().for_each(|sender| sender.join().expect("a sender ends"));
        }
        let server = Server::start(database);
        let there = all_ids(server.address);
        let unique: BTreeSet<String> = there.iter().cloned().collect();
        assert_eq!(unique.len(), there.len(), "none is there twice");
        let acknowledged = acknowledged.lock().expect("no sender broke");
        let lost: Vec<_> = acknowledged.difference(&unique).collect();
        assert!(lost.is_empty(), "{} of {} were lost", lost.len(), acknowledged.len());
        println!("{} rounds: {} acknowledged, {} there", rounds(), acknowledged.len(), there.len());
    }
}

fn send_until_gone(address: SocketAddr, token: &str, number: &AtomicU64, acknowledged: &Mutex<BTreeSet<String>>) {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return;
    };
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    loop {
        let body = record(number.fetch_add(1, Ordering::Relaxed));
        let head = format!(
            "POST /api/records HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
        match acknowledgement(&mut reader) {
            Some(id) => acknowledged.lock().expect("no sender broke").insert(id),
            None => return,
        };
    }
}

/// ID in a complete response; `None` once the server is gone.
fn acknowledgement(reader: &mut impl BufRead) -> Option<String> {
    let (mut line, mut length, mut created) = (String::new(), 0, false);
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        created |= line.starts_with("HTTP/1.1 201");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    assert!(created, "{}", String::from_utf8_lossy(&body));
    let answer: serde_json::Value = serde_json::from_slice(&body).ok()?;
    Some(answer["id"].as_str()?.to_owned())
}

fn all_ids(address: SocketAddr) -> Vec<String> {
    let (mut ids, mut query) = (Vec::new(), String::new());
    loop {
        let list = get(address, &format!("/api/records?limit=10000{query}"), None)
            .is(200)
            .json();
        let records = list["records"].as_array().expect("a list");
        ids.extend(records.iter().map(crate::support::id_of));
        match list["next"].as_i64() {
            Some(next) => query = format!("&before={next}"),
            None => return ids,
        }
    }
}
