// Own kernels of the portable backend. `E` stands for the type of elements, f32 or f16, and is put in before
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

@compute @workgroup_size(256)
fn fill(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { first[i] = E(draw(i, n.b) * n.x + n.y); }
}

@compute @workgroup_size(256)
fn copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { second[i] = first[i]; }
}

@compute @workgroup_size(1)
fn empty() {
    if (n.a == 0xffffffffu) { first[0] = E(0.0); }
}

// The error function to 1.5e-7: Abramowitz and Stegun, 7.1.26.
fn error_function(x: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.3275911 * abs(x));
    let y = 1.0 - (((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * exp(-x * x);
    return sign(x) * y;
}

@compute @workgroup_size(256)
fn gelu(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) {
        let x = f32(first[i]);
        second[i] = E(0.5 * x * (1.0 + error_function(x * 0.70710678)));
    }
}

@compute @workgroup_size(256)
fn silu_mul(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) {
        let x = f32(first[i]);
        third[i] = E(x / (1.0 + exp(-x)) * f32(second[i]));
    }
}

// One step of AdamW, its first: weight, gradient, mean and mean square. x, y, z, w: rate, both decays,
// weight decay; the small constant is 1e-8.
@compute @workgroup_size(256)
fn adamw(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) {
        let g = f32(second[i]);
        let mean = n.y * f32(third[i]) + (1.0 - n.y) * g;
        let square = n.z * f32(fourth[i]) + (1.0 - n.z) * g * g;
        let step = n.x * (mean / (1.0 - n.y)) / (sqrt(square / (1.0 - n.z)) + 1e-8);
        first[i] = E(f32(first[i]) * (1.0 - n.x * n.w) - step);
        third[i] = E(mean);
        fourth[i] = E(square);
    }
}

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

const LOWEST: f32 = -3.0e38;

// Rows: one group each. a rows, b columns.
@compute @workgroup_size(256)
fn softmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let begin = select(0u, row, inside) * n.b;
    var most = LOWEST;
    for (var i = local; i < n.b; i += WIDTH) { most = max(most, f32(first[begin + i]) * n.x); }
    most = highest_of_group(most, local);
    var sum = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { sum += exp(f32(first[begin + i]) * n.x - most); }
    sum = sum_of_group(sum, local);
    if (inside) {
        for (var i = local; i < n.b; i += WIDTH) { second[begin + i] = E(exp(f32(first[begin + i]) * n.x - most) / sum); }
    }
}

@compute @workgroup_size(256)
fn layer_norm(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let begin = select(0u, row, inside) * n.b;
    var sum = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { sum += f32(first[begin + i]); }
    let mean = sum_of_group(sum, local) / f32(n.b);
    var square = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { let d = f32(first[begin + i]) - mean; square += d * d; }
    let scale = inverseSqrt(sum_of_group(square, local) / f32(n.b) + n.x);
    if (inside) {
        for (var i = local; i < n.b; i += WIDTH) {
            fourth[begin + i] = E((f32(first[begin + i]) - mean) * scale * f32(second[i]) + f32(third[i]));
        }
    }
}

@compute @workgroup_size(256)
fn rms_norm(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let begin = select(0u, row, inside) * n.b;
    var square = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { let x = f32(first[begin + i]); square += x * x; }
    let scale = inverseSqrt(sum_of_group(square, local) / f32(n.b) + n.x);
    if (inside) {
        for (var i = local; i < n.b; i += WIDTH) { third[begin + i] = E(f32(first[begin + i]) * scale * f32(second[i])); }
    }
}

// [a, c] · [b, c]ᵀ → [a, b], d of them: tiles of 64 × 64, each thread 4 × 4, 16 at a time along c. The
// matrices of one product follow those of the one before.
const TILE: u32 = 64u;
const DEEP: u32 = 16u;
var<workgroup> left_tile: array<f32, 1024>;
var<workgroup> right_tile: array<f32, 1024>;

@compute @workgroup_size(256)
fn product_nt(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row0 = group.y * TILE;
    let column0 = group.x * TILE;
    let left0 = group.z * n.a * n.c;
    let right0 = group.z * n.b * n.c;
    let tx = local % 16u;
    let ty = local / 16u;
    var sums: array<vec4<f32>, 4>;
    for (var k0 = 0u; k0 < n.c; k0 += DEEP) {
        for (var t = local; t < TILE * DEEP; t += 256u) {
            let r = t / DEEP;
            let k = k0 + t % DEEP;
            let in_left = row0 + r < n.a && k < n.c;
            let in_right = column0 + r < n.b && k < n.c;
            left_tile[(t % DEEP) * TILE + r] = select(0.0, f32(first[left0 + select(0u, (row0 + r) * n.c + k, in_left)]), in_left);
            right_tile[(t % DEEP) * TILE + r] = select(0.0, f32(second[right0 + select(0u, (column0 + r) * n.c + k, in_right)]), in_right);
        }
        workgroupBarrier();
        for (var k = 0u; k < DEEP; k++) {
            let b = vec4<f32>(right_tile[k * TILE + tx], right_tile[k * TILE + tx + 16u], right_tile[k * TILE + tx + 32u], right_tile[k * TILE + tx + 48u]);
            for (var i = 0u; i < 4u; i++) { sums[i] += left_tile[k * TILE + ty + 16u * i] * b; }
        }
        workgroupBarrier();
    }
    let out0 = group.z * n.a * n.b;
    for (var i = 0u; i < 4u; i++) {
        for (var j = 0u; j < 4u; j++) {
            let row = row0 + ty + 16u * i;
            let column = column0 + tx + 16u * j;
            if (row < n.a && column < n.b) { third[out0 + row * n.b + column] = E(sums[i][j] * n.x); }
        }
    }
}

// [a, c] · [c, b] → [a, b], d of them.
@compute @workgroup_size(256)
fn product_nn(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row0 = group.y * TILE;
    let column0 = group.x * TILE;
    let left0 = group.z * n.a * n.c;
    let right0 = group.z * n.b * n.c;
    let tx = local % 16u;
    let ty = local / 16u;
    var sums: array<vec4<f32>, 4>;
    for (var k0 = 0u; k0 < n.c; k0 += DEEP) {
        for (var t = local; t < TILE * DEEP; t += 256u) {
            let r = t / DEEP;
            let k = k0 + t % DEEP;
            let in_left = row0 + r < n.a && k < n.c;
            left_tile[(t % DEEP) * TILE + r] = select(0.0, f32(first[left0 + select(0u, (row0 + r) * n.c + k, in_left)]), in_left);
            let k_right = k0 + t / TILE;
            let column = column0 + t % TILE;
            let in_right = column < n.b && k_right < n.c;
            right_tile[t] = select(0.0, f32(second[right0 + select(0u, k_right * n.b + column, in_right)]), in_right);
        }
        workgroupBarrier();
        for (var k = 0u; k < DEEP; k++) {
            let b = vec4<f32>(right_tile[k * TILE + tx], right_tile[k * TILE + tx + 16u], right_tile[k * TILE + tx + 32u], right_tile[k * TILE + tx + 48u]);
            for (var i = 0u; i < 4u; i++) { sums[i] += left_tile[k * TILE + ty + 16u * i] * b; }
        }
        workgroupBarrier();
    }
    let out0 = group.z * n.a * n.b;
    for (var i = 0u; i < 4u; i++) {
        for (var j = 0u; j < 4u; j++) {
            let row = row0 + ty + 16u * i;
            let column = column0 + tx + 16u * j;
            if (row < n.a && column < n.b) { third[out0 + row * n.b + column] = E(sums[i][j] * n.x); }
        }
    }
}

// Fused attention forward (Dao, "FlashAttention-2"): one group for 64 queries of a head, keys in tiles of
// 16; a queries and keys, b elements of a head (at most 128, a multiple of 4), c heads in all; w is 1 where no
// query sees a later key. A quarter of the group's threads shares a query: thread q·4 + s.
const KEYS: u32 = 16u;
const QUERIES: u32 = 64u;
var<workgroup> key_tile: array<f32, 2048>;
var<workgroup> value_tile: array<f32, 2048>;
var<workgroup> score_tile: array<f32, 1024>;

@compute @workgroup_size(256)
fn attention(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let head0 = group.y * n.a * n.b;
    let q = local / 4u;
    let part = local % 4u;
    let query = group.x * QUERIES + q;
    let inside = query < n.a;
    let row = head0 + select(0u, query, inside) * n.b;
    let quarter = n.b / 4u;
    var sums: array<f32, 32>;
    var most = LOWEST;
    var total = 0.0;
    let causal = n.w > 0.5;
    let end = select(n.a, min(n.a, group.x * QUERIES + QUERIES), causal);
    for (var key0 = 0u; key0 < end; key0 += KEYS) {
        for (var t = local; t < KEYS * n.b; t += 256u) {
            let here = key0 + t / n.b < n.a;
            let at = head0 + select(0u, key0 * n.b + t, here);
            key_tile[t] = select(0.0, f32(second[at]), here);
            value_tile[t] = select(0.0, f32(third[at]), here);
        }
        workgroupBarrier();
        // Each thread of a query takes every fourth key.
        var high = most;
        for (var k = part; k < KEYS; k += 4u) {
            var score = 0.0;
            for (var e = 0u; e < n.b; e++) { score += f32(first[row + e]) * key_tile[k * n.b + e]; }
            let hidden = key0 + k >= n.a || (causal && key0 + k > query);
            score_tile[q * KEYS + k] = select(score * n.x, LOWEST, hidden);
        }
        workgroupBarrier();
        for (var k = 0u; k < KEYS; k++) { high = max(high, score_tile[q * KEYS + k]); }
        let shrink = exp(most - high);
        total *= shrink;
        for (var e = 0u; e < quarter; e++) { sums[e] *= shrink; }
        for (var k = 0u; k < KEYS; k++) {
            let score = score_tile[q * KEYS + k];
            let p = select(exp(score - high), 0.0, score <= LOWEST);
            total += p;
            for (var e = 0u; e < quarter; e++) { sums[e] += p * value_tile[k * n.b + part * quarter + e]; }
        }
        most = high;
        workgroupBarrier();
    }
    if (inside) {
        for (var e = 0u; e < quarter; e++) { fourth[row + part * quarter + e] = E(sums[e] / total); }
    }
}
