// Elements, each by itself.

extern "C" __global__ void fill(element* out, u64 n, u32 seed, float scale, float offset) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = write(__fadd_rn(__fmul_rn(draw(i, seed), scale), offset));
}

extern "C" __global__ void fill_float(float* out, u64 n, u32 seed, float scale, float offset) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = __fadd_rn(__fmul_rn(draw(i, seed), scale), offset);
}

// Labels below `classes`.
extern "C" __global__ void fill_labels(int* out, u64 n, u32 seed, u32 classes) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        u32 x = (u32)((draw(i, seed) + 1.0f) * 8388608.0f);
        out[i] = (int)(x % classes);
    }
}

// Bytes, one for each negative number drawn.
extern "C" __global__ void fill_mask(unsigned char* out, u64 n, u32 seed) {
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = draw(i, seed) < 0.0f;
}

extern "C" __global__ void empty() {}

extern "C" __global__ void __launch_bounds__(256) scale(const Wide* in, Wide* out, u64 vectors, float factor) {
    EACH_WIDE(vectors) {
        Wide a = in[i], b;
        #pragma unroll
        for (int j = 0; j < WIDE; j++) b.e[j] = write(read(a.e[j]) * factor);
        out[i] = b;
    }
}

// Functions of one tensor: value and slope in fp32.
__device__ __forceinline__ float logistic(float x) { return 1.0f / (1.0f + __expf(-x)); }
__device__ __forceinline__ float gelu_of(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
__device__ __forceinline__ float gelu_slope(float x) {
    return 0.5f * (1.0f + erff(x * 0.70710678118654752f)) + x * 0.39894228040143268f * __expf(-0.5f * x * x);
}
__device__ __forceinline__ float gelu_tanh_of(float x) {
    return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
}
__device__ __forceinline__ float gelu_tanh_slope(float x) {
    float t = tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.79788456080286536f * (1.0f + 0.134145f * x * x);
}
__device__ __forceinline__ float silu_of(float x) { return x * logistic(x); }
__device__ __forceinline__ float silu_slope(float x) {
    float s = logistic(x);
    return s * (1.0f + x * (1.0f - s));
}

#define OF_ONE(name, of) \
    extern "C" __global__ void __launch_bounds__(256) name(const Wide* in, Wide* out, u64 vectors) { \
        EACH_WIDE(vectors) { \
            Wide a = in[i], b; \
            FOR_ELEMENTS(j) { float x = read(a.e[j]); b.e[j] = write(of); } \
            out[i] = b; \
        } \
    }
OF_ONE(gelu, gelu_of(x))
OF_ONE(gelu_tanh, gelu_tanh_of(x))
OF_ONE(silu, silu_of(x))
OF_ONE(tanh_of, tanhf(x))
OF_ONE(sigmoid, logistic(x))

// Of two: in backward the gradient of the result, g, and what forward kept, x.
#define OF_TWO(name, of) \
    extern "C" __global__ void __launch_bounds__(256) name(const Wide* first, const Wide* second, Wide* out, u64 vectors) { \
        EACH_WIDE(vectors) { \
            Wide a = first[i], c = second[i], b; \
            FOR_ELEMENTS(j) { float g = read(a.e[j]), x = read(c.e[j]); b.e[j] = write(of); } \
            out[i] = b; \
        } \
    }
OF_TWO(add, g + x)
OF_TWO(mul, g * x)
OF_TWO(silu_mul, silu_of(g) * x)
OF_TWO(gelu_backward, g * gelu_slope(x))
OF_TWO(gelu_tanh_backward, g * gelu_tanh_slope(x))
OF_TWO(silu_backward, g * silu_slope(x))
OF_TWO(tanh_backward, g * (1.0f - x * x))

// Gradients of gate and up of silu(gate) × up.
extern "C" __global__ void __launch_bounds__(256) silu_mul_backward(
    const Wide* gradient, const Wide* gate, const Wide* up, Wide* of_gate, Wide* of_up, u64 vectors) {
    EACH_WIDE(vectors) {
        Wide g = gradient[i], a = gate[i], c = up[i], p, q;
        FOR_ELEMENTS(j) {
            float d = read(g.e[j]), x = read(a.e[j]);
            p.e[j] = write(d * read(c.e[j]) * silu_slope(x));
            q.e[j] = write(d * silu_of(x));
        }
        of_gate[i] = p;
        of_up[i] = q;
    }
}

// As many bytes as a vector holds elements.
struct alignas(WIDE) Bytes { unsigned char b[WIDE]; };

extern "C" __global__ void __launch_bounds__(256) masked_fill(const Wide* in, const Bytes* mask, Wide* out, u64 vectors) {
    EACH_WIDE(vectors) {
        Wide a = in[i];
        Bytes m = mask[i];
        FOR_ELEMENTS(j) if (m.b[j]) a.e[j] = 0;
        out[i] = a;
    }
}

// Drops a share of the elements and scales the others up; the mask holds what was kept.
extern "C" __global__ void __launch_bounds__(256) dropout(
    const Wide* in, Wide* out, Bytes* mask, u64 vectors, float dropped, u32 seed) {
    float factor = 1.0f / (1.0f - dropped);
    EACH_WIDE(vectors) {
        Wide a = in[i];
        Bytes m;
        FOR_ELEMENTS(j) {
            bool kept = (draw(i * WIDE + j, seed) + 1.0f) * 0.5f >= dropped;
            m.b[j] = kept;
            a.e[j] = write(kept ? read(a.e[j]) * factor : 0.0f);
        }
        out[i] = a;
        mask[i] = m;
    }
}

// To the other width: halves to fp32, fp32 to bfloat16.
#if ELEMENT == 0
typedef u16 other;
__device__ __forceinline__ other to_other(float x) {
    u32 bits = __float_as_uint(x);
    return (other)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#else
typedef float other;
__device__ __forceinline__ other to_other(float x) { return x; }
#endif
struct alignas(ELEMENT == 0 ? 8 : 16) Others { other e[WIDE]; };

extern "C" __global__ void __launch_bounds__(256) cast(const Wide* in, Others* out, u64 vectors) {
    EACH_WIDE(vectors) {
        Wide a = in[i];
        Others b;
        FOR_ELEMENTS(j) b.e[j] = to_other(read(a.e[j]));
        out[i] = b;
    }
}

// [samples, length, heads, row] to [samples, heads, length, row], a row in whole vectors.
extern "C" __global__ void __launch_bounds__(256) transpose_copy(
    const Wide* in, Wide* out, u64 vectors, u32 length, u32 heads, u32 row) {
    EACH_WIDE(vectors) {
        u32 within = (u32)(i % row);
        u64 rest = i / row;
        u32 position = (u32)(rest % length);
        rest /= length;
        u32 head = (u32)(rest % heads);
        u64 sample = rest / heads;
        out[i] = in[((sample * length + position) * heads + head) * row + within];
    }
}

// Both halves of each row exchanged, the second of them negated; a half holds whole vectors.
extern "C" __global__ void __launch_bounds__(256) rotate_half(const Wide* in, Wide* out, u64 vectors, u32 row) {
    EACH_WIDE(vectors) {
        u32 within = (u32)(i % row), half = row / 2;
        bool first = within < half;
        Wide a = in[first ? i + half : i - half];
        if (first) FOR_ELEMENTS(j) a.e[j] = write(-read(a.e[j]));
        out[i] = a;
    }
}

// Decoupled weight decay (Loshchilov and Hutter, 2019), the step of `torch.optim.AdamW(fused=True)`.
extern "C" __global__ void __launch_bounds__(256) adamw(
    Wide* weight, const Wide* gradient, Wide* first, Wide* second, u64 vectors,
    float rate, float beta1, float beta2, float epsilon, float decay, float correction1, float root_correction2) {
    float step_size = rate / correction1;
    EACH_WIDE(vectors) {
        Wide w = weight[i], g = gradient[i], m = first[i], v = second[i];
        #pragma unroll
        for (int j = 0; j < WIDE; j++) {
            float grad = read(g.e[j]);
            float value = read(w.e[j]);
            value -= rate * decay * value;
            float mean = beta1 * read(m.e[j]) + (1.0f - beta1) * grad;
            float square = beta2 * read(v.e[j]) + (1.0f - beta2) * grad * grad;
            value -= step_size * mean / (sqrtf(square) / root_correction2 + epsilon);
            w.e[j] = write(value); m.e[j] = write(mean); v.e[j] = write(square);
        }
        weight[i] = w; first[i] = m; second[i] = v;
    }
}
