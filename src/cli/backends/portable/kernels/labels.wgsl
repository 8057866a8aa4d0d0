// Kernels with labels, or with results that are fp32 whatever the type of elements, which `E` stands for as in
// common.wgsl: a rows, b columns.

struct Numbers {
    a: u32, b: u32, c: u32, d: u32,
    x: f32, y: f32, z: f32, w: f32,
}

@group(0) @binding(0) var<storage, read_write> logits: array<E>;
@group(0) @binding(1) var<storage, read_write> labels: array<u32>;
@group(0) @binding(2) var<storage, read_write> gradient: array<E>;
@group(0) @binding(3) var<storage, read_write> loss: array<f32>;
@group(0) @binding(4) var<uniform> n: Numbers;

const WIDTH: u32 = 256u;
const LOWEST: f32 = -3.0e38;
var<workgroup> scratch: array<f32, 256>;

@compute @workgroup_size(256)
fn fill_labels(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = (group.y * groups.x + group.x) * WIDTH + local;
    if (i < n.a) {
        var x = i ^ (n.c * 0x9e3779b9u);
        x ^= x >> 16u; x *= 0x7feb352du; x ^= x >> 15u; x *= 0x846ca68bu; x ^= x >> 16u;
        labels[i] = (x >> 8u) % n.b;
    }
}

// The highest of a row times y, and the sum of exponentials below it.
fn statistics(begin: u32, local: u32) -> vec2<f32> {
    var most = LOWEST;
    for (var i = local; i < n.b; i += WIDTH) { most = max(most, f32(logits[begin + i]) * n.y); }
    scratch[local] = most;
    workgroupBarrier();
    for (var o = 128u; o > 0u; o >>= 1u) {
        if (local < o) { scratch[local] = max(scratch[local], scratch[local + o]); }
        workgroupBarrier();
    }
    most = scratch[0];
    workgroupBarrier();
    var sum = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { sum += exp(f32(logits[begin + i]) * n.y - most); }
    scratch[local] = sum;
    workgroupBarrier();
    for (var o = 128u; o > 0u; o >>= 1u) {
        if (local < o) { scratch[local] += scratch[local + o]; }
        workgroupBarrier();
    }
    return vec2<f32>(most, scratch[0]);
}

// The loss of each row, and the gradient of their mean: x is a row's share, y is 1.
@compute @workgroup_size(256)
fn cross_entropy(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let begin = select(0u, row, inside) * n.b;
    let found = statistics(begin, local);
    if (inside) {
        let label = labels[row];
        if (local == 0u) { loss[row] = log(found.y) + found.x - f32(logits[begin + label]); }
        for (var i = local; i < n.b; i += WIDTH) {
            let share = exp(f32(logits[begin + i]) - found.x) / found.y;
            gradient[begin + i] = E((share - select(0.0, 1.0, i == label)) * n.x);
        }
    }
}

// The logarithm of each row's sum of exponentials, of scores times y: what backward starts from.
@compute @workgroup_size(256)
fn sums(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let found = statistics(select(0u, row, inside) * n.b, local);
    if (inside && local == 0u) { loss[row] = log(found.y) + found.x; }
}
