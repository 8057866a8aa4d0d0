//! Memory of training steps, against measurements.

mod bits;
mod compiled;
mod contributed;
mod data_parallel;
mod deepspeed;
mod drawn;
mod draws;
mod later;
mod lengths;
mod loading;
mod max_batch;
mod one_process;
mod optimizers;
mod parts;
mod pipeline_parallel;
mod process;
mod shared;
mod steps;
mod tensor_parallel;
mod text_families;
mod trainer;
mod trl;
mod two_gpus;
