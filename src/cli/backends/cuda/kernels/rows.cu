// Rows, one block each: forward.

// `sums`, where given, gets each row's logarithm of the sum of exponentials, which backward starts from.
template <int HELD>
__device__ __forceinline__ void softmax_held(const Wide* in, Wide* out, u32 vectors, float factor, float* sums) {
    __shared__ float scratch[32];
    in += (u64)blockIdx.x * vectors; out += (u64)blockIdx.x * vectors;
    float x[HELD][WIDE];
    float most = NEGATIVE_INFINITY, sum = 0.0f;
    FOR_HELD(i) {
        Wide a = in[i];
        FOR_ELEMENTS(j) { x[h][j] = read(a.e[j]) * factor; most = fmaxf(most, x[h][j]); }
    }
    most = over_block<true>(most, scratch);
    FOR_HELD(i) FOR_ELEMENTS(j) { x[h][j] = __expf(x[h][j] - most); sum += x[h][j]; }
    sum = over_block<false>(sum, scratch);
    if (sums && threadIdx.x == 0) sums[blockIdx.x] = most + __logf(sum);
    float share = 1.0f / sum;
    FOR_HELD(i) {
        Wide b;
        FOR_ELEMENTS(j) b.e[j] = write(x[h][j] * share);
        out[i] = b;
    }
}

template <int HELD, bool CENTRED>
__device__ __forceinline__ void norm_held(
    const Wide* in, const Wide* weight, const Wide* bias, Wide* out, u32 vectors, float epsilon) {
    __shared__ float scratch[32];
    in += (u64)blockIdx.x * vectors; out += (u64)blockIdx.x * vectors;
    float x[HELD][WIDE];
    float count = (float)vectors * WIDE, mean = 0.0f, square = 0.0f;
    FOR_HELD(i) {
        Wide a = in[i];
        FOR_ELEMENTS(j) { x[h][j] = read(a.e[j]); mean += x[h][j]; }
    }
    mean = CENTRED ? over_block<false>(mean, scratch) / count : 0.0f;
    FOR_HELD(i) FOR_ELEMENTS(j) { float d = x[h][j] - mean; square += d * d; }
    float scale = rsqrtf(over_block<false>(square, scratch) / count + epsilon);
    FOR_HELD(i) {
        Wide w = weight[i], c, b;
        if (CENTRED) c = bias[i];
        FOR_ELEMENTS(j) {
            float y = (x[h][j] - mean) * scale * read(w.e[j]);
            b.e[j] = write(CENTRED ? y + read(c.e[j]) : y);
        }
        out[i] = b;
    }
}

template <int HELD>
__device__ __forceinline__ void sum_held(const Wide* in, element* out, u32 vectors) {
    __shared__ float scratch[32];
    in += (u64)blockIdx.x * vectors;
    float sum = 0.0f;
    FOR_HELD(i) {
        Wide a = in[i];
        FOR_ELEMENTS(j) sum += read(a.e[j]);
    }
    sum = over_block<false>(sum, scratch);
    if (threadIdx.x == 0) out[blockIdx.x] = write(sum);
}

#define HELD_KERNELS(HELD) \
    extern "C" __global__ void __launch_bounds__(512) softmax_##HELD(const Wide* in, Wide* out, u32 vectors, float factor, float* sums) \
    { softmax_held<HELD>(in, out, vectors, factor, sums); } \
    extern "C" __global__ void __launch_bounds__(512) layer_norm_##HELD(const Wide* in, const Wide* w, const Wide* b, Wide* out, u32 vectors, float epsilon) \
    { norm_held<HELD, true>(in, w, b, out, vectors, epsilon); } \
    extern "C" __global__ void __launch_bounds__(512) rms_norm_##HELD(const Wide* in, const Wide* w, Wide* out, u32 vectors, float epsilon) \
    { norm_held<HELD, false>(in, w, 0, out, vectors, epsilon); } \
    extern "C" __global__ void __launch_bounds__(512) sum_rows_##HELD(const Wide* in, element* out, u32 vectors) \
    { sum_held<HELD>(in, out, vectors); }
HELD_KERNELS(1)
HELD_KERNELS(2)
HELD_KERNELS(4)

// The highest number of a row too long for registers, scaled, and the sum of exponentials below it, in one
// pass.
__device__ __forceinline__ void statistics(const Wide* in, u32 vectors, float factor, float* scratch, float& all, float& sum) {
    float most = NEGATIVE_INFINITY;
    sum = 0.0f;
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
        Wide a = in[i];
        float here = most;
        FOR_ELEMENTS(j) here = fmaxf(here, read(a.e[j]) * factor);
        sum *= __expf(most - here);
        FOR_ELEMENTS(j) sum += __expf(read(a.e[j]) * factor - here);
        most = here;
    }
    all = over_block<true>(most, scratch);
    sum = over_block<false>(most == NEGATIVE_INFINITY ? 0.0f : sum * __expf(most - all), scratch);
}

extern "C" __global__ void __launch_bounds__(1024) softmax_long(const Wide* in, Wide* out, u32 vectors, float factor, float* sums) {
    __shared__ float scratch[32];
    in += (u64)blockIdx.x * vectors; out += (u64)blockIdx.x * vectors;
    float all, sum;
    statistics(in, vectors, factor, scratch, all, sum);
    if (sums && threadIdx.x == 0) sums[blockIdx.x] = all + __logf(sum);
    float share = 1.0f / sum;
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
        Wide a = in[i], b;
        FOR_ELEMENTS(j) b.e[j] = write(__expf(read(a.e[j]) * factor - all) * share);
        out[i] = b;
    }
}

extern "C" __global__ void __launch_bounds__(1024) log_softmax(const Wide* in, Wide* out, u32 vectors) {
    __shared__ float scratch[32];
    in += (u64)blockIdx.x * vectors; out += (u64)blockIdx.x * vectors;
    float all, sum;
    statistics(in, vectors, 1.0f, scratch, all, sum);
    float below = all + __logf(sum);
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
        Wide a = in[i], b;
        FOR_ELEMENTS(j) b.e[j] = write(read(a.e[j]) - below);
        out[i] = b;
    }
}

// Mean cross-entropy: the loss of each row, and the gradient of their mean.
extern "C" __global__ void __launch_bounds__(1024) cross_entropy(
    const Wide* logits, const int* labels, float* loss, Wide* gradient, u32 vectors, float share_of_row) {
    __shared__ float scratch[32];
    u64 row = blockIdx.x;
    logits += row * vectors; gradient += row * vectors;
    int label = labels[row];
    float all, sum;
    statistics(logits, vectors, 1.0f, scratch, all, sum);
    if (threadIdx.x == 0) loss[row] = __logf(sum) + all - read(((const element*)logits)[label]);
    float share = share_of_row / sum;
    for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
        Wide a = logits[i], b;
        FOR_ELEMENTS(j) {
            float g = __expf(read(a.e[j]) - all) * share;
            if ((int)(i * WIDE + j) == label) g -= share_of_row;
            b.e[j] = write(g);
        }
        gradient[i] = b;
    }
}
