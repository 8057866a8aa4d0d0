//! Time of steps, against measurements.

mod course;
mod intervals;
mod on_h100;
mod reference;
mod several;
mod steps;
