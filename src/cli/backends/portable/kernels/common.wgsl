// What the kernels of the portable backend share: this file stands before each of the others. `E` stands for the type of elements, f32 or f16, and is put in before
// compiling; sums and statistics are f32. Work is laid over a grid of two dimensions, because one holds no
// more than 65535 groups.

struct Numbers {
    // Elements, rows, columns, what is summed over; meanings differ by kernel.
    a: u32, b: u32, c: u32, d: u32,
    // Scales and constants.
    x: f32, y: f32, z: f32, w: f32,
}

@group(0) @binding(0) var<storage, read_write> first: array<E>;
@group(0) @binding(1) var<storage, read_write> second: array<E>;
@group(0) @binding(2) var<storage, read_write> third: array<E>;
@group(0) @binding(3) var<storage, read_write> fourth: array<E>;
@group(0) @binding(4) var<uniform> n: Numbers;

const WIDTH: u32 = 256u;

fn place(group: vec3<u32>, groups: vec3<u32>, local: u32) -> u32 {
    return (group.y * groups.x + group.x) * WIDTH + local;
}

// The same number for the same place on every machine (`kernels/random.rs`).
fn draw(at: u32, seed: u32) -> f32 {
    var x = at ^ (seed * 0x9e3779b9u);
    x ^= x >> 16u; x *= 0x7feb352du; x ^= x >> 15u; x *= 0x846ca68bu; x ^= x >> 16u;
    return f32(x >> 8u) * (1.0 / 8388608.0) - 1.0;
}

const LOWEST: f32 = -3.0e38;
var<workgroup> scratch: array<f32, 256>;

fn sum_of_group(x: f32, local: u32) -> f32 {
    workgroupBarrier();
    scratch[local] = x;
    workgroupBarrier();
    for (var o = 128u; o > 0u; o >>= 1u) {
        if (local < o) { scratch[local] += scratch[local + o]; }
        workgroupBarrier();
    }
    return scratch[0];
}

fn highest_of_group(x: f32, local: u32) -> f32 {
    workgroupBarrier();
    scratch[local] = x;
    workgroupBarrier();
    for (var o = 128u; o > 0u; o >>= 1u) {
        if (local < o) { scratch[local] = max(scratch[local], scratch[local + o]); }
        workgroupBarrier();
    }
    return scratch[0];
}
