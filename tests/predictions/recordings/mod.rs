//! Allocations and frees, event by event, against those recorded on a GPU and without one.

mod deepspeed;
mod events;
mod marks;
mod passes;
mod tools;
mod two_gpus;
mod without_gpu;
