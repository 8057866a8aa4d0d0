// What all own kernels of `vramscope bench` share. They are compiled at run time by NVRTC, without headers:
// this file stands before each of the others.
//
// ELEMENT is the type of the tensors' elements: 0 fp32, 1 bfloat16, 2 fp16. Sums and statistics are
// fp32. Tensors are contiguous and begin at multiples of 16 bytes; rows hold whole vectors of 16 bytes,
// which the host sees to.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

#if ELEMENT == 0
typedef float element;
__device__ __forceinline__ float read(element x) { return x; }
__device__ __forceinline__ element write(float x) { return x; }
#elif ELEMENT == 1
typedef u16 element;
__device__ __forceinline__ float read(element x) { return __uint_as_float((u32)x << 16); }
__device__ __forceinline__ element write(float x) {
    u32 bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (element)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#else
typedef u16 element;
__device__ __forceinline__ float read(element x) {
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x));
    return out;
}
__device__ __forceinline__ element write(float x) {
    element out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
}
#endif

// 16 bytes of elements.
enum { WIDE = 16 / sizeof(element) };
struct alignas(16) Wide { element e[WIDE]; };

#define NEGATIVE_INFINITY __int_as_float(0xff800000)

// The same number for the same place on every machine: the host draws it too (`kernels/random.rs`).
__device__ __forceinline__ float draw(u64 place, u32 seed) {
    u32 x = (u32)place ^ ((u32)(place >> 32) * 0x85ebca6bu) ^ (seed * 0x9e3779b9u);
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return (float)(x >> 8) * (1.0f / 8388608.0f) - 1.0f;
}

#define FOR_ELEMENTS(j) _Pragma("unroll") for (int j = 0; j < WIDE; j++)

// Vectors, one after the other over the whole grid.
#define EACH_WIDE(vectors) \
    u64 step = (u64)gridDim.x * blockDim.x; \
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < (vectors); i += step)

// Sum or maximum over a block of whole warps; every thread gets it. `scratch` holds 32 floats.
template <bool MAXIMUM>
__device__ __forceinline__ float over_block(float x, float* scratch) {
    #pragma unroll
    for (int o = 16; o; o >>= 1) {
        float y = __shfl_xor_sync(0xffffffffu, x, o);
        x = MAXIMUM ? fmaxf(x, y) : x + y;
    }
    int warps = blockDim.x >> 5;
    if (warps == 1) return x;
    __syncthreads();
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
    __syncthreads();
    float y = (threadIdx.x & 31) < warps ? scratch[threadIdx.x & 31] : (MAXIMUM ? NEGATIVE_INFINITY : 0.0f);
    #pragma unroll
    for (int o = 16; o; o >>= 1) {
        float z = __shfl_xor_sync(0xffffffffu, y, o);
        y = MAXIMUM ? fmaxf(y, z) : y + z;
    }
    return y;
}

// One block a row, the row in registers: `vectors` is at most HELD × blockDim.x.
#define FOR_HELD(i) \
    _Pragma("unroll") for (int h = 0; h < HELD; h++) \
        if (u32 i = h * blockDim.x + threadIdx.x; i < vectors)
