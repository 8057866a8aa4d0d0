//! Recommended settings: the ready ones of the page, and random ones that were trained on a GPU.

mod ready;
mod trained;
