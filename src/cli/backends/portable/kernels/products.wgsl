// [a, c] · [c, b] → [a, b], d of them, times x: tiles of 64 × 64, each thread 4 × 4, 16 at a time along c. The
// matrices of one product follow those of the one before. Where y is 1 the left one lies as [c, a], where z is 1
// the right one as [b, c]; each is read along the way that it lies.
const TILE: u32 = 64u;
const DEEP: u32 = 16u;
var<workgroup> left_tile: array<f32, 1024>;
var<workgroup> right_tile: array<f32, 1024>;

// Where element t of a tile lies: along the sum, and across it.
fn spot(t: u32, across_first: bool) -> vec2<u32> {
    return select(vec2<u32>(t % DEEP, t / DEEP), vec2<u32>(t / TILE, t % TILE), across_first);
}

@compute @workgroup_size(256)
fn product(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row0 = group.y * TILE;
    let column0 = group.x * TILE;
    let left0 = group.z * n.a * n.c;
    let right0 = group.z * n.b * n.c;
    let left_transposed = n.y > 0.5;
    let right_transposed = n.z > 0.5;
    let tx = local % 16u;
    let ty = local / 16u;
    var sums: array<vec4<f32>, 4>;
    for (var k0 = 0u; k0 < n.c; k0 += DEEP) {
        for (var t = local; t < TILE * DEEP; t += 256u) {
            let l = spot(t, left_transposed);
            let lk = k0 + l.x;
            let row = row0 + l.y;
            let in_left = row < n.a && lk < n.c;
            let left_at = select(row * n.c + lk, lk * n.a + row, left_transposed);
            left_tile[l.x * TILE + l.y] = select(0.0, f32(first[left0 + select(0u, left_at, in_left)]), in_left);
            let r = spot(t, !right_transposed);
            let rk = k0 + r.x;
            let column = column0 + r.y;
            let in_right = column < n.b && rk < n.c;
            let right_at = select(rk * n.b + column, column * n.c + rk, right_transposed);
            right_tile[r.x * TILE + r.y] = select(0.0, f32(second[right0 + select(0u, right_at, in_right)]), in_right);
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
