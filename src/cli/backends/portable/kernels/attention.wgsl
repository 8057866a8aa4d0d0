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
