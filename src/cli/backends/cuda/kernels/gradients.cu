// Rows, one block each: backward. Then sums over columns, and rows that labels choose.

// Rows of a backward softmax: gradient = probability × (gradient of it − their product's sum). PyTorch makes the
// product a tensor of its own first (`grad * output` in aten/src/ATen/native/cuda/SoftMax.cu); where that is asked
// for, it stands in the gradient's place.
template <int HELD, bool OF_PRODUCT>
__device__ __forceinline__ void softmax_backward_held(
    const Wide* gradient, const Wide* probability, Wide* out, u32 vectors) {
    __shared__ float scratch[32];
    u64 row = (u64)blockIdx.x * vectors;
    probability += row; gradient += row; out += row;
    float p[HELD][WIDE], g[HELD][WIDE];
    float sum = 0.0f;
    FOR_HELD(i) {
        Wide a = probability[i], b = gradient[i];
        FOR_ELEMENTS(j) { p[h][j] = read(a.e[j]); g[h][j] = read(b.e[j]); sum += OF_PRODUCT ? g[h][j] : p[h][j] * g[h][j]; }
    }
    sum = over_block<false>(sum, scratch);
    FOR_HELD(i) {
        Wide b;
        FOR_ELEMENTS(j) b.e[j] = write(OF_PRODUCT ? g[h][j] - p[h][j] * sum : p[h][j] * (g[h][j] - sum));
        out[i] = b;
    }
}

// The gradient of a norm's input: scale × (g − mean of g − normed × mean of g × normed), g being gradient
// times weight. RMSNorm has no mean.
template <int HELD, bool CENTRED>
__device__ __forceinline__ void norm_backward_held(
    const Wide* gradient, const Wide* in, const Wide* weight, const float* scales, const float* means, Wide* out, u32 vectors) {
    __shared__ float scratch[32];
    u64 row = (u64)blockIdx.x * vectors;
    gradient += row; in += row; out += row;
    float scale = scales[blockIdx.x], mean = CENTRED ? means[blockIdx.x] : 0.0f, count = (float)vectors * WIDE;
    float g[HELD][WIDE], n[HELD][WIDE], sum = 0.0f, product = 0.0f;
    FOR_HELD(i) {
        Wide a = gradient[i], b = in[i], w = weight[i];
        FOR_ELEMENTS(j) {
            g[h][j] = read(a.e[j]) * read(w.e[j]);
            n[h][j] = (read(b.e[j]) - mean) * scale;
            sum += g[h][j];
            product += g[h][j] * n[h][j];
        }
    }
    sum = CENTRED ? over_block<false>(sum, scratch) / count : 0.0f;
    product = over_block<false>(product, scratch) / count;
    FOR_HELD(i) {
        Wide b;
        FOR_ELEMENTS(j) b.e[j] = write(scale * (g[h][j] - sum - n[h][j] * product));
        out[i] = b;
    }
}

#define HELD_KERNELS(HELD) \
    extern "C" __global__ void __launch_bounds__(512) softmax_backward_##HELD(const Wide* g, const Wide* p, Wide* out, u32 vectors) \
    { softmax_backward_held<HELD, false>(g, p, out, vectors); } \
    extern "C" __global__ void __launch_bounds__(512) softmax_of_product_##HELD(const Wide* g, const Wide* p, Wide* out, u32 vectors) \
    { softmax_backward_held<HELD, true>(g, p, out, vectors); } \
    extern "C" __global__ void __launch_bounds__(512) layer_norm_backward_##HELD(const Wide* g, const Wide* in, const Wide* w, const float* scales, const float* means, Wide* out, u32 vectors) \
    { norm_backward_held<HELD, true>(g, in, w, scales, means, out, vectors); } \
    extern "C" __global__ void __launch_bounds__(512) rms_norm_backward_##HELD(const Wide* g, const Wide* in, const Wide* w, const float* scales, Wide* out, u32 vectors) \
    { norm_backward_held<HELD, false>(g, in, w, scales, 0, out, vectors); }
HELD_KERNELS(1)
HELD_KERNELS(2)
HELD_KERNELS(4)

// Rows too long for registers: the sum in one pass, the result in a second.
template <bool OF_PRODUCT>
__device__ __forceinline__ void softmax_backward_long_of(const Wide* gradient, const Wide* probability, Wide* out, u32 vectors) {
    __shared__ float scratch[32];
    u64 row = (u64)blockIdx.x * vectors;
    gradient += row; probability += row; out += row;
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
        Wide a = gradient[i], p = probability[i];
        FOR_ELEMENTS(j) sum += OF_PRODUCT ? read(a.e[j]) : read(a.e[j]) * read(p.e[j]);
    }
    sum = over_block<false>(sum, scratch);
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
        Wide a = gradient[i], p = probability[i], b;
        FOR_ELEMENTS(j) {
            float g = read(a.e[j]), share = read(p.e[j]);
            b.e[j] = write(OF_PRODUCT ? g - share * sum : share * (g - sum));
        }
        out[i] = b;
    }
}
extern "C" __global__ void __launch_bounds__(1024) softmax_backward_long(const Wide* g, const Wide* p, Wide* out, u32 vectors)
{ softmax_backward_long_of<false>(g, p, out, vectors); }
extern "C" __global__ void __launch_bounds__(1024) softmax_of_product_long(const Wide* g, const Wide* p, Wide* out, u32 vectors)
{ softmax_backward_long_of<true>(g, p, out, vectors); }

// Gradient − probability × the gradients' sum, from logarithms of probabilities.
extern "C" __global__ void __launch_bounds__(1024) log_softmax_backward(const Wide* gradient, const Wide* logarithm, Wide* out, u32 vectors) {
    __shared__ float scratch[32];
    u64 row = (u64)blockIdx.x * vectors;
    gradient += row; logarithm += row; out += row;
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
        Wide a = gradient[i];
        FOR_ELEMENTS(j) sum += read(a.e[j]);
    }
    sum = over_block<false>(sum, scratch);
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
        Wide a = gradient[i], l = logarithm[i], b;
        FOR_ELEMENTS(j) b.e[j] = write(read(a.e[j]) - __expf(read(l.e[j])) * sum);
        out[i] = b;
    }
}

// Sums over columns, in two steps. A block of 32 × 8 threads takes 32 vectors of columns (x) and a part of
// the rows (y); its sums go to `partial`, [parts][terms][columns], fp32. What is summed is `term`, with one
// number for each element.
#define COLUMN_SUMS(name, arguments, TERMS, terms) \
    extern "C" __global__ void __launch_bounds__(256) name(arguments, float* partial, u32 rows, u32 vectors) { \
        __shared__ float tile[8][32 * WIDE + 1]; \
        u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, column = blockIdx.x * 32 + lane; \
        float sums[TERMS][WIDE] = {}; \
        if (column < vectors) \
            for (u32 row = blockIdx.y * 8 + warp; row < rows; row += gridDim.y * 8) { \
                u64 at = (u64)row * vectors + column; \
                terms \
            } \
        for (int t = 0; t < TERMS; t++) { \
            FOR_ELEMENTS(j) tile[warp][lane * WIDE + j] = sums[t][j]; \
            __syncthreads(); \
            for (u32 c = threadIdx.x; c < 32 * WIDE; c += 256) { \
                float sum = 0.0f; \
                for (int w = 0; w < 8; w++) sum += tile[w][c]; \
                u32 whole = blockIdx.x * 32 * WIDE + c; \
                if (whole < vectors * WIDE) partial[((u64)blockIdx.y * TERMS + t) * vectors * WIDE + whole] = sum; \
            } \
            __syncthreads(); \
        } \
    }
#define AND ,
COLUMN_SUMS(sum_columns, const Wide* in, 1, {
    Wide a = in[at];
    FOR_ELEMENTS(j) sums[0][j] += read(a.e[j]);
})
// Gradients of weight and bias.
COLUMN_SUMS(layer_norm_weights, const Wide* gradient AND const Wide* in AND const float* scales AND const float* means, 2, {
    Wide a = gradient[at]; Wide b = in[at];
    float scale = scales[row]; float mean = means[row];
    FOR_ELEMENTS(j) { float g = read(a.e[j]); sums[0][j] += g * (read(b.e[j]) - mean) * scale; sums[1][j] += g; }
})
COLUMN_SUMS(rms_norm_weights, const Wide* gradient AND const Wide* in AND const float* scales, 1, {
    Wide a = gradient[at]; Wide b = in[at];
    float scale = scales[row];
    FOR_ELEMENTS(j) sums[0][j] += read(a.e[j]) * read(b.e[j]) * scale;
})

// The second step: one of `terms` into one result of `columns`.
extern "C" __global__ void __launch_bounds__(256) sum_parts(
    const float* partial, element* out, u32 parts, u32 columns, u32 terms, u32 term) {
    u32 column = blockIdx.x * 32 + (threadIdx.x & 31), warp = threadIdx.x >> 5;
    __shared__ float tile[8][33];
    float sum = 0.0f;
    if (column < columns)
        for (u32 part = warp; part < parts; part += 8) sum += partial[((u64)part * terms + term) * columns + column];
    tile[warp][threadIdx.x & 31] = sum;
    __syncthreads();
    if (warp == 0 && column < columns) {
        for (int w = 1; w < 8; w++) sum += tile[w][threadIdx.x & 31];
        out[column] = write(sum);
    }
}

// The mean of chosen logarithms, negated: one block.
extern "C" __global__ void __launch_bounds__(1024) nll(const int* labels, const element* logarithms, float* out, u32 rows, u32 columns) {
    __shared__ float scratch[32];
    float sum = 0.0f;
    for (u32 row = threadIdx.x; row < rows; row += blockDim.x) sum -= read(logarithms[(u64)row * columns + labels[row]]);
    sum = over_block<false>(sum, scratch);
    if (threadIdx.x == 0) out[0] = sum / rows;
}

// Its gradient, into cleared memory.
extern "C" __global__ void __launch_bounds__(256) nll_backward(const int* labels, element* out, u32 rows, u32 columns) {
    u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) out[(u64)row * columns + labels[row]] = write(-1.0f / rows);
}

// Rows of a table. One block a row.
extern "C" __global__ void __launch_bounds__(256) embedding(const int* labels, const Wide* table, Wide* out, u32 vectors) {
    u64 from = (u64)labels[blockIdx.x] * vectors, to = (u64)blockIdx.x * vectors;
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) out[to + i] = table[from + i];
}

// Adds rows into a cleared table; rows of one label meet, so each addition is atomic, of 4 bytes at a time.
extern "C" __global__ void __launch_bounds__(256) embedding_backward(const int* labels, const u32* gradient, u32* table, u32 words) {
    u64 to = (u64)labels[blockIdx.x] * words, from = (u64)blockIdx.x * words;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) {
        u32 mine = gradient[from + i];
#if ELEMENT == 0
        atomicAdd((float*)table + to + i, __uint_as_float(mine));
#else
        u32* at = table + to + i;
        u32 seen = *at, old;
        do {
            old = seen;
            u32 low = write(read((element)(old & 0xffffu)) + read((element)(mine & 0xffffu)));
            u32 high = write(read((element)(old >> 16)) + read((element)(mine >> 16)));
            seen = atomicCAS(at, old, low | (high << 16));
        } while (seen != old);
#endif
    }
}
