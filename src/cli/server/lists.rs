//! Answers to lists, kept until the records change: a list of ten thousand is written once, not for everyone
//! who asks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::store::{Filter, List, Store, StoreError, Version};
use crate::records::hex;

/// An answer as it is sent.
#[derive(Debug, Clone)]
pub struct Written {
    body: Bytes,
    tag: HeaderValue,
}

#[derive(Debug)]
struct Kept {
    filter: Filter,
    version: Version,
    since: Instant,
    written: Written,
}

/// The kept answers.
#[derive(Debug, Default, Clone)]
pub struct Lists(Arc<Mutex<Vec<Kept>>>);

/// Answers that are kept at a time.
const KEPT: usize = 4;
/// Shorter lists are as quickly read as kept.
const SHORTEST: i64 = 101;
/// No answer is kept for longer, whatever the version says: where several servers write to one PostgreSQL, a
/// record may become visible after one with a higher place.
const LONGEST: Duration = Duration::from_secs(5);

impl Lists {
    /// A list, written now or kept from before.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn get(&self, store: &Store, filter: Filter) -> Result<Written, StoreError> {
        let whole = Filter {
            limit: filter.limit,
            ..Filter::default()
        };
        if filter != whole || filter.limit < SHORTEST {
            return write(store.list(&filter).await?, filter.limit);
        }
        // One writes, the others wait for what it wrote.
        let mut kept = self.0.lock().await;
        let version = store.version().await?;
        kept.retain(|one| one.version == version && one.since.elapsed() < LONGEST);
        if let Some(one) = kept.iter().find(|one| one.filter == filter) {
            return Ok(one.written.clone());
        }
        let written = write(store.list(&filter).await?, filter.limit)?;
        kept.truncate(KEPT - 1);
        kept.insert(
            0,
            Kept {
                filter,
                version,
                since: Instant::now(),
                written: written.clone(),
            },
        );
        Ok(written)
    }
}

fn write(list: List, limit: i64) -> Result<Written, StoreError> {
    let List { count, last, entries } = list;
    // A list that is not full is the last one.
    let next = last.filter(|_| count == limit);
    let next = next.map_or("null".to_owned(), |seq| seq.to_string());
    // Around what is there, which may be megabytes.
    let mut body = entries;
    body.insert_str(0, "{\"records\":[");
    body.push_str("],\"next\":");
    body.push_str(&next);
    body.push('}');
    let tag = format!("\"{}\"", hex(&Sha256::digest(&body)[..16]));
    let tag = HeaderValue::from_str(&tag).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(Written { body: body.into(), tag })
}

impl Written {
    /// The answer to a request with these headers: nothing where the other end has it already.
    pub fn answer(self, headers: &HeaderMap) -> Response {
        let kept = [
            (ETAG, self.tag.clone()),
            // Asked anew each time, and answered in brief where nothing has changed.
            (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        ];
        if headers.get(IF_NONE_MATCH) == Some(&self.tag) {
            return (StatusCode::NOT_MODIFIED, kept).into_response();
        }
        let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (kept, kind, self.body).into_response()
    }
}
