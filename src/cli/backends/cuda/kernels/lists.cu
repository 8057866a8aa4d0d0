// Lists of tensors, by one launch: `addresses` holds where each tensor begins, one operand after the other.
// A block takes a part (x) of a tensor (y); parts hold PART vectors.

enum { PART = 4096 };

#define OF_LIST(name, parameters, operands, body) \
    extern "C" __global__ void __launch_bounds__(512) name(Wide* const* addresses, u64 vectors parameters) { \
        u64 begin = (u64)blockIdx.x * PART, end = min(begin + (u64)PART, vectors); \
        Wide* const* of = addresses + blockIdx.y; \
        u32 tensors = gridDim.y; \
        operands \
        for (u64 i = begin + threadIdx.x; i < end; i += blockDim.x) body \
    }
#define AND ,

OF_LIST(foreach_scale, AND float factor, Wide* x = of[0];, {
    Wide a = x[i];
    FOR_ELEMENTS(j) a.e[j] = write(read(a.e[j]) * factor);
    x[i] = a;
})

OF_LIST(foreach_lerp, AND float weight, Wide* x = of[0]; const Wide* y = of[tensors];, {
    Wide a = x[i]; Wide b = y[i];
    FOR_ELEMENTS(j) { float p = read(a.e[j]); a.e[j] = write(p + weight * (read(b.e[j]) - p)); }
    x[i] = a;
})

OF_LIST(foreach_addcdiv, AND float value, Wide* x = of[0]; const Wide* y = of[tensors]; const Wide* z = of[2 * tensors];, {
    Wide a = x[i]; Wide b = y[i]; Wide c = z[i];
    FOR_ELEMENTS(j) a.e[j] = write(read(a.e[j]) + value * read(b.e[j]) / read(c.e[j]));
    x[i] = a;
})

// Squares of each part, summed.
extern "C" __global__ void __launch_bounds__(512) foreach_squares(Wide* const* addresses, u64 vectors, float* partial) {
    __shared__ float scratch[32];
    u64 begin = (u64)blockIdx.x * PART, end = min(begin + (u64)PART, vectors);
    const Wide* x = addresses[blockIdx.y];
    float sum = 0.0f;
    for (u64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
        Wide a = x[i];
        FOR_ELEMENTS(j) { float p = read(a.e[j]); sum += p * p; }
    }
    sum = over_block<false>(sum, scratch);
    if (threadIdx.x == 0) partial[(u64)blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

// The root of each tensor's sum. One block a tensor.
extern "C" __global__ void __launch_bounds__(256) foreach_roots(const float* partial, float* out, u32 parts) {
    __shared__ float scratch[32];
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < parts; i += blockDim.x) sum += partial[(u64)blockIdx.x * parts + i];
    sum = over_block<false>(sum, scratch);
    if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(sum);
}

// The step of `adamw` on lists of weights, gradients and both moments.
OF_LIST(foreach_adamw, AND float rate AND float beta1 AND float beta2 AND float epsilon AND float decay AND float correction1 AND float root_correction2,
    Wide* weight = of[0]; const Wide* gradient = of[tensors]; Wide* first = of[2 * tensors]; Wide* second = of[3 * tensors];, {
    Wide w = weight[i]; Wide g = gradient[i]; Wide m = first[i]; Wide v = second[i];
    FOR_ELEMENTS(j) {
        float grad = read(g.e[j]);
        float value = read(w.e[j]);
        value -= rate * decay * value;
        float mean = beta1 * read(m.e[j]) + (1.0f - beta1) * grad;
        float square = beta2 * read(v.e[j]) + (1.0f - beta2) * grad * grad;
        value -= rate / correction1 * mean / (sqrtf(square) / root_correction2 + epsilon);
        w.e[j] = write(value); m.e[j] = write(mean); v.e[j] = write(square);
    }
    weight[i] = w; first[i] = m; second[i] = v;
})
