//! Time of steps, against measurements.

mod course;
mod several;
mod steps;
