//! One module for each route that has a page.

pub mod plan;
