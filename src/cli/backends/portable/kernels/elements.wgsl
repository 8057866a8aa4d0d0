// Elements, each by itself: a elements.

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

fn logistic(x: f32) -> f32 { return 1.0 / (1.0 + exp(-x)); }
fn gelu_slope(x: f32) -> f32 {
    return 0.5 * (1.0 + error_function(x * 0.70710678)) + x * 0.39894228 * exp(-0.5 * x * x);
}
fn gelu_tanh_slope(x: f32) -> f32 {
    let t = tanh(0.79788456 * (x + 0.044715 * x * x * x));
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.79788456 * (1.0 + 0.134145 * x * x);
}
fn silu_slope(x: f32) -> f32 {
    let s = logistic(x);
    return s * (1.0 + x * (1.0 - s));
}

// Of one tensor.
@compute @workgroup_size(256)
fn scale(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let x = f32(first[i]); second[i] = E(x * n.x); }
}

@compute @workgroup_size(256)
fn gelu(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let x = f32(first[i]); second[i] = E(0.5 * x * (1.0 + error_function(x * 0.70710678))); }
}

@compute @workgroup_size(256)
fn gelu_tanh(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let x = f32(first[i]); second[i] = E(0.5 * x * (1.0 + tanh(0.79788456 * (x + 0.044715 * x * x * x)))); }
}

@compute @workgroup_size(256)
fn silu(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let x = f32(first[i]); second[i] = E(x * logistic(x)); }
}

@compute @workgroup_size(256)
fn tanh_of(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let x = f32(first[i]); second[i] = E(tanh(x)); }
}

@compute @workgroup_size(256)
fn sigmoid(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let x = f32(first[i]); second[i] = E(logistic(x)); }
}

// Of two: in backward the gradient of the result, g, and what forward kept, x.
@compute @workgroup_size(256)
fn add(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let g = f32(first[i]); let x = f32(second[i]); third[i] = E(g + x); }
}

@compute @workgroup_size(256)
fn mul(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let g = f32(first[i]); let x = f32(second[i]); third[i] = E(g * x); }
}

@compute @workgroup_size(256)
fn silu_mul(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let g = f32(first[i]); let x = f32(second[i]); third[i] = E(g * logistic(g) * x); }
}

@compute @workgroup_size(256)
fn gelu_backward(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let g = f32(first[i]); let x = f32(second[i]); third[i] = E(g * gelu_slope(x)); }
}

@compute @workgroup_size(256)
fn gelu_tanh_backward(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let g = f32(first[i]); let x = f32(second[i]); third[i] = E(g * gelu_tanh_slope(x)); }
}

@compute @workgroup_size(256)
fn silu_backward(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let g = f32(first[i]); let x = f32(second[i]); third[i] = E(g * silu_slope(x)); }
}

@compute @workgroup_size(256)
fn tanh_backward(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) { let g = f32(first[i]); let x = f32(second[i]); third[i] = E(g * (1.0 - x * x)); }
}

// [samples, length, heads, width] to [samples, heads, length, width]: b length, c heads, d width.
@compute @workgroup_size(256)
fn transpose_copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) {
        let within = i % n.d;
        let position = i / n.d % n.b;
        let head = i / n.d / n.b % n.c;
        let sample = i / n.d / n.b / n.c;
        second[i] = first[((sample * n.b + position) * n.c + head) * n.d + within];
    }
}

// Both halves of each row of b exchanged, the second of them negated.
@compute @workgroup_size(256)
fn rotate_half(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = place(group, groups, local);
    if (i < n.a) {
        let half = n.b / 2u;
        if (i % n.b < half) { second[i] = -first[i + half]; } else { second[i] = first[i - half]; }
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
