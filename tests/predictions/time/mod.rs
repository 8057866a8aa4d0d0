//! Time of steps, against measurements.

mod course;
mod intervals;
mod own_record;
mod reference;
mod several;
mod steps;
