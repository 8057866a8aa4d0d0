//! Cards and links: data files with sources.
