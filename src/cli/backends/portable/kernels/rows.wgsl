// Rows, one group each: a rows, b columns.

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

@compute @workgroup_size(256)
fn log_softmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let begin = select(0u, row, inside) * n.b;
    var most = LOWEST;
    for (var i = local; i < n.b; i += WIDTH) { most = max(most, f32(first[begin + i])); }
    most = highest_of_group(most, local);
    var sum = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { sum += exp(f32(first[begin + i]) - most); }
    let below = most + log(sum_of_group(sum, local));
    if (inside) {
        for (var i = local; i < n.b; i += WIDTH) { second[begin + i] = E(f32(first[begin + i]) - below); }
    }
}

// The gradient of a softmax, from its result's gradient and its result, times x.
@compute @workgroup_size(256)
fn softmax_backward(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let begin = select(0u, row, inside) * n.b;
    var sum = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { sum += f32(first[begin + i]) * f32(second[begin + i]); }
    sum = sum_of_group(sum, local);
    if (inside) {
        for (var i = local; i < n.b; i += WIDTH) {
            third[begin + i] = E(f32(second[begin + i]) * (f32(first[begin + i]) - sum) * n.x);
        }
    }
}

@compute @workgroup_size(256)
fn log_softmax_backward(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let begin = select(0u, row, inside) * n.b;
    var sum = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { sum += f32(first[begin + i]); }
    sum = sum_of_group(sum, local);
    if (inside) {
        for (var i = local; i < n.b; i += WIDTH) {
            third[begin + i] = E(f32(first[begin + i]) - exp(f32(second[begin + i])) * sum);
        }
    }
}

@compute @workgroup_size(256)
fn sum_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    let inside = row < n.a;
    let begin = select(0u, row, inside) * n.b;
    var sum = 0.0;
    for (var i = local; i < n.b; i += WIDTH) { sum += f32(first[begin + i]); }
    sum = sum_of_group(sum, local);
    if (inside && local == 0u) { second[row] = E(sum); }
}

// A thread a column.
@compute @workgroup_size(256)
fn sum_columns(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let column = place(group, groups, local);
    if (column < n.b) {
        var sum = 0.0;
        for (var row = 0u; row < n.a; row++) { sum += f32(first[row * n.b + column]); }
        second[column] = E(sum);
    }
}
