//! vramscope

fn main() {}
