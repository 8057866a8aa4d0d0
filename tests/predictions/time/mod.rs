//! Time of steps, against measurements.

mod course;
mod on_h100;
mod several;
mod steps;
