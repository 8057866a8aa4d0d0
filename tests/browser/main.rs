//! Tests the built page, as published, in a real Chromium. `cargo xtask test` builds the page first.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod accessible;
mod attention;
mod bad_input;
mod benchmarks;
mod chromedriver;
mod chunks;
mod compare;
mod controls;
mod cost;
mod course;
mod dataset;
mod delivery;
mod diagnose;
mod embed;
mod export;
mod find;
mod first_screen;
mod gpus;
mod hub;
mod keyboard;
mod languages;
mod launch;
mod launch_walk;
mod links;
mod loading;
mod look;
mod make_fit;
mod offline;
#[allow(dead_code, reason = "shots and measure use more of it")]
mod page;
mod person;
mod random_walk;
mod reading;
mod recommend;
mod recorded;
mod recorded_controls;
mod room;
mod same_bytes;
mod saved;
mod setups;
mod single_file;
mod sweep;
mod tasks;
mod time;
mod walk;
mod what_if;
mod worker;

use page::Page;
