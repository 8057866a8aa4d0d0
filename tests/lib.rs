//! Tests across crates: measured against predicted, the real binary, a real browser.
