//! Caches responses with lists until the records change, so that a list of ten thousand records is serialized once, not
//! for every client.

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

/// A response ready to be sent.
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

/// The cached responses.
#[derive(Debug, Default, Clone)]
pub struct Lists(Arc<Mutex<Vec<Kept>>>);

/// Largest number of cached responses.
const KEPT: usize = 4;
/// Smallest limit to cache; shorter lists are as fast to read from the database.
const SHORTEST: i64 = 101;
/// Longest time in the cache, whatever the version says: if several servers write to one PostgreSQL, a record may
/// become visible after one with a higher sequence number.
const LONGEST: Duration = Duration::from_secs(5);

impl Lists {
    /// Returns a list, from the cache or the database.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn get(&self, store: &Store, filter: Filter) -> Result<Written, StoreError> {
        let whole = Filter {
            limit: filter.limit,
            ..Filter::default()
        };
        if filter != whole || filter.limit < SHORTEST {
            return write(store.list(&filter).await?, filter.limit);
        }
        // One task reads; the others wait for its result.
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
    // A list shorter than the limit is the last one.
    let next = last.filter(|_| count == limit);
    let next = next.map_or("null".to_owned(), |seq| seq.to_string());
    // Extend the existing text, which may be megabytes.
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
    /// The response to a request with these headers; without a body if the client already has it.
    pub fn answer(self, headers: &HeaderMap) -> Response {
        let kept = [
            (ETAG, self.tag.clone()),
            // Clients must revalidate, and get a short response if nothing has changed.
            (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        ];
        if headers.get(IF_NONE_MATCH) == Some(&self.tag) {
            return (StatusCode::NOT_MODIFIED, kept).into_response();
        }
        let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (kept, kind, self.body).into_response()
    }
}
