// What attention needs beside matrix products and softmax, and an own fused kernel.

// A key that orders as the numbers do.
__device__ __forceinline__ u32 key_of(element x) {
#if ELEMENT == 0
    u32 bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
#else
    u32 bits = x;
    return (bits & 0x8000u ? (~bits & 0xffffu) : bits | 0x8000u) << 16;
#endif
}

// Keeps the `kept` highest of each row, and those equal to the lowest kept; the others become −∞. A
// radix selection, 8 bits a round, one block a row.
extern "C" __global__ void __launch_bounds__(256) keep_highest(const element* in, element* out, u32 columns, u32 kept) {
    __shared__ u32 counts[256];
    __shared__ u32 chosen[2];
    in += (u64)blockIdx.x * columns; out += (u64)blockIdx.x * columns;
    u32 prefix = 0, left = kept;
    for (int shift = 24; shift >= (ELEMENT == 0 ? 0 : 16); shift -= 8) {
        u32 known = shift == 24 ? 0u : 0xffffffffu << (shift + 8);
        counts[threadIdx.x] = 0;
        __syncthreads();
        for (u32 i = threadIdx.x; i < columns; i += 256) {
            u32 key = key_of(in[i]);
            if ((key & known) == prefix) atomicAdd(&counts[(key >> shift) & 255u], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            // Lane l holds digits 255 − 8l down to 248 − 8l.
            u32 of_lane = 0, top = 255 - 8 * threadIdx.x;
            for (u32 d = 0; d < 8; d++) of_lane += counts[top - d];
            u32 through = of_lane;
            for (int o = 1; o < 32; o <<= 1) {
                u32 below = __shfl_up_sync(0xffffffffu, through, o);
                if ((int)threadIdx.x >= o) through += below;
            }
            u32 before = through - of_lane;
            if (before < left && through >= left) {
                for (u32 d = 0; d < 8; d++) {
                    u32 here = counts[top - d];
                    if (before + here >= left) { chosen[0] = top - d; chosen[1] = left - before; break; }
                    before += here;
                }
            }
        }
        __syncthreads();
        prefix |= chosen[0] << shift;
        left = chosen[1];
        __syncthreads();
    }
    element none = write(NEGATIVE_INFINITY);
    for (u32 i = threadIdx.x; i < columns; i += 256) {
        element x = in[i];
        out[i] = key_of(x) >= prefix ? x : none;
    }
}

// Writes −∞ where the key comes after the query, in [matrices, rows, columns]; row r is query first + r.
extern "C" __global__ void __launch_bounds__(256) hide_later(element* scores, u64 n, u32 rows, u32 columns, u32 first) {
    u64 step = (u64)gridDim.x * blockDim.x;
    element none = write(NEGATIVE_INFINITY);
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        u32 column = (u32)(i % columns), row = (u32)(i / columns % rows);
        if (column > row + first) scores[i] = none;
    }
}

// Results of blocks of queries, [block][matrix][query][element], to [matrix][query][element]. Blocks hold
// `block` queries, the last what is left.
extern "C" __global__ void __launch_bounds__(256) put_together(
    const Wide* parts, Wide* out, u64 vectors, u32 matrices, u32 length, u32 row, u32 block) {
    EACH_WIDE(vectors) {
        u32 element = (u32)(i % row);
        u64 rest = i / row;
        u32 query = (u32)(rest % length), matrix = (u32)(rest / length);
        u32 first = query / block * block;
        u32 queries = min(block, length - first);
        u64 from = (u64)matrices * first + (u64)matrix * queries + (query - first);
        out[i] = parts[from * row + element];
    }
}

// Fused attention forward (T. Dao, "FlashAttention-2", 2023) for cards without cuDNN: four warps share tiles
// of 64 keys and values, each warp holds 16 queries, products are of tensor cores, sums fp32. One block for
// 64 queries (x) of one head (y). No copy runs ahead of the arithmetic, so it is slower than cuDNN's.
#if ELEMENT != 0 && __CUDA_ARCH__ >= 800

#if ELEMENT == 1
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#endif

__device__ __forceinline__ void multiply_add(float* c, const u32* a, u32 b0, u32 b1) {
    asm volatile(MMA " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void load_four(u32* out, const element* at) {
    u32 address = (u32)__cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(address));
}

__device__ __forceinline__ void load_four_turned(u32* out, const element* at) {
    u32 address = (u32)__cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(address));
}

__device__ __forceinline__ u32 pack(float low, float high) {
    return (u32)write(low) | ((u32)write(high) << 16);
}

template <int WIDTH>
__device__ __forceinline__ void flash_forward(
    const element* query, const element* key, const element* value, element* out,
    u32 length, u32 group, float factor, u32 causal) {
    // Eight more elements a row keep the banks apart.
    __shared__ alignas(16) element keys[64][WIDTH + 8];
    __shared__ alignas(16) element values[64][WIDTH + 8];
    u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31, row = lane >> 2, pair = (lane & 3) * 2;
    u64 queries_of = (u64)blockIdx.y * length * WIDTH, keys_of = (u64)(blockIdx.y / group) * length * WIDTH;
    u32 first = blockIdx.x * 64 + warp * 16;
    u32 q0 = first + row, q1 = q0 + 8;

    u32 held[WIDTH / 16][4];
    #pragma unroll
    for (int k = 0; k < WIDTH / 16; k++) {
        #pragma unroll
        for (int part = 0; part < 4; part++) {
            u32 q = part & 1 ? q1 : q0, at = k * 16 + pair + (part & 2 ? 8 : 0);
            held[k][part] = q < length ? *(const u32*)(query + queries_of + (u64)q * WIDTH + at) : 0u;
        }
    }
    float sums[WIDTH / 8][4] = {};
    float most0 = NEGATIVE_INFINITY, most1 = NEGATIVE_INFINITY, total0 = 0.0f, total1 = 0.0f;
    u32 end = causal ? min(length, blockIdx.x * 64 + 64) : length;
    for (u32 begin = 0; begin < end; begin += 64) {
        __syncthreads();
        for (u32 i = threadIdx.x; i < 64 * WIDTH / 8; i += 128) {
            u32 r = i / (WIDTH / 8), c = i % (WIDTH / 8) * 8;
            uint4 k = make_uint4(0, 0, 0, 0), v = k;
            if (begin + r < length) {
                u64 at = keys_of + (u64)(begin + r) * WIDTH + c;
                k = *(const uint4*)(key + at);
                v = *(const uint4*)(value + at);
            }
            *(uint4*)&keys[r][c] = k;
            *(uint4*)&values[r][c] = v;
        }
        __syncthreads();
        float scores[8][4] = {};
        #pragma unroll
        for (int k = 0; k < WIDTH / 16; k++) {
            #pragma unroll
            for (int n = 0; n < 4; n++) {
                u32 b[4];
                load_four(b, &keys[n * 16 + (lane >> 4) * 8 + (lane & 7)][k * 16 + (lane >> 3 & 1) * 8]);
                multiply_add(scores[2 * n], held[k], b[0], b[1]);
                multiply_add(scores[2 * n + 1], held[k], b[2], b[3]);
            }
        }
        float high0 = most0, high1 = most1;
        #pragma unroll
        for (int n = 0; n < 8; n++) {
            #pragma unroll
            for (int j = 0; j < 2; j++) {
                u32 at = begin + n * 8 + pair + j;
                bool hide0 = at >= length || (causal && at > q0), hide1 = at >= length || (causal && at > q1);
                scores[n][j] = hide0 ? NEGATIVE_INFINITY : scores[n][j] * factor;
                scores[n][2 + j] = hide1 ? NEGATIVE_INFINITY : scores[n][2 + j] * factor;
                high0 = fmaxf(high0, scores[n][j]);
                high1 = fmaxf(high1, scores[n][2 + j]);
            }
        }
        #pragma unroll
        for (int o = 1; o < 4; o <<= 1) {
            high0 = fmaxf(high0, __shfl_xor_sync(0xffffffffu, high0, o));
            high1 = fmaxf(high1, __shfl_xor_sync(0xffffffffu, high1, o));
        }
        // A row of hidden scores alone has no highest one; its probabilities are zero.
        float base0 = high0 == NEGATIVE_INFINITY ? 0.0f : high0, base1 = high1 == NEGATIVE_INFINITY ? 0.0f : high1;
        float shrink0 = __expf(most0 - base0), shrink1 = __expf(most1 - base1);
        most0 = high0; most1 = high1;
        total0 *= shrink0; total1 *= shrink1;
        #pragma unroll
        for (int n = 0; n < WIDTH / 8; n++) {
            sums[n][0] *= shrink0; sums[n][1] *= shrink0; sums[n][2] *= shrink1; sums[n][3] *= shrink1;
        }
        #pragma unroll
        for (int n = 0; n < 8; n++) {
            scores[n][0] = __expf(scores[n][0] - base0); scores[n][1] = __expf(scores[n][1] - base0);
            scores[n][2] = __expf(scores[n][2] - base1); scores[n][3] = __expf(scores[n][3] - base1);
            total0 += scores[n][0] + scores[n][1];
            total1 += scores[n][2] + scores[n][3];
        }
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            u32 a[4] = {
                pack(scores[2 * k][0], scores[2 * k][1]), pack(scores[2 * k][2], scores[2 * k][3]),
                pack(scores[2 * k + 1][0], scores[2 * k + 1][1]), pack(scores[2 * k + 1][2], scores[2 * k + 1][3])};
            #pragma unroll
            for (int n = 0; n < WIDTH / 16; n++) {
                u32 b[4];
                load_four_turned(b, &values[k * 16 + (lane >> 3 & 1) * 8 + (lane & 7)][n * 16 + (lane >> 4) * 8]);
                multiply_add(sums[2 * n], a, b[0], b[1]);
                multiply_add(sums[2 * n + 1], a, b[2], b[3]);
            }
        }
    }
    #pragma unroll
    for (int o = 1; o < 4; o <<= 1) {
        total0 += __shfl_xor_sync(0xffffffffu, total0, o);
        total1 += __shfl_xor_sync(0xffffffffu, total1, o);
    }
    float share0 = 1.0f / total0, share1 = 1.0f / total1;
    #pragma unroll
    for (int n = 0; n < WIDTH / 8; n++) {
        u64 at = queries_of + n * 8 + pair;
        if (q0 < length) *(u32*)(out + at + (u64)q0 * WIDTH) = pack(sums[n][0] * share0, sums[n][1] * share0);
        if (q1 < length) *(u32*)(out + at + (u64)q1 * WIDTH) = pack(sums[n][2] * share1, sums[n][3] * share1);
    }
}

#define FLASH(WIDTH) \
    extern "C" __global__ void __launch_bounds__(128) flash_##WIDTH( \
        const element* query, const element* key, const element* value, element* out, \
        u32 length, u32 group, float factor, u32 causal) \
    { flash_forward<WIDTH>(query, key, value, out, length, group, factor, causal); }
FLASH(64)
FLASH(128)
#endif
