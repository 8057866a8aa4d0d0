//! Removes records that are older than they are kept, while the server runs.

use std::time::Duration;

use super::store::Store;

/// Time between two removals.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes what is older than so many days, now and every day, until it is ended.
pub async fn keep(store: Store, days: u32) {
    let mut day = tokio::time::interval(DAY);
    loop {
        // The first tick is at once.
        day.tick().await;
        match store.prune_older_than(days).await {
            Ok(0) => {}
            Ok(removed) => anstream::eprintln!("{removed} records that were older than {days} days were removed"),
            // The next day tries again.
            Err(error) => anstream::eprintln!("old records could not be removed: {error}"),
        }
    }
}
