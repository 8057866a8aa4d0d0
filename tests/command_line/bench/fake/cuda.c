/* A driver without a card, for tests: its memory is the host's, its kernels are the few below.
 *
 * The environment says what it is like: FAKE_CUDA (13000), FAKE_CARDS (1), FAKE_MEMORY (bytes, 80 GiB), FAKE_INIT
 * (what cuInit answers), FAKE_LAUNCH_MS (how long a launch takes), FAKE_PEERS (whether cards reach each other),
 * FAKE_WRONG (kernels add 1 to what they write), FAKE_LOST (the launch from which on every call fails).
 * Compiled with -DOLD it lacks what drivers before CUDA 4 lacked. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t address;
enum { OK = 0, NO_MEMORY = 2, NO_DEVICE = 100, ALREADY = 704, NOT_ENABLED = 705, LAUNCH_FAILED = 719, NOT_SUPPORTED = 801 };

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

/* A card is known by the address of its number. */
static int cards[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static int *current = &cards[0];
static int64_t taken[16];
static long launches = 0;
static int reaches[16];

static int lost(void) {
    long from = setting("FAKE_LOST", 0);
    return from && launches >= from ? LAUNCH_FAILED : OK;
}

int cuInit(unsigned flags) { (void)flags; return (int)setting("FAKE_INIT", OK); }
int cuDriverGetVersion(int *version) { *version = (int)setting("FAKE_CUDA", 13000); return OK; }
int cuGetErrorString(int code, const char **words) {
    *words = code == NO_MEMORY ? "out of memory"
        : code == NO_DEVICE ? "no CUDA-capable device is detected"
        : code == LAUNCH_FAILED ? "unspecified launch failure"
        : code == NOT_SUPPORTED ? "operation not supported"
        : 0;
    return OK;
}
int cuDeviceGetCount(int *count) { *count = (int)setting("FAKE_CARDS", 1); return OK; }
int cuDeviceGet(int *device, int place) { *device = place; return OK; }
int cuDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, (size_t)length, "Fake GPU"); return OK; }
static int64_t memory(void) { return setting("FAKE_MEMORY", 80L << 30); }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)memory(); return OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 4 : attribute == 38 ? 1 << 20 : 0;
    return OK;
}
int cuDeviceGetPCIBusId(char *id, int length, int device) { snprintf(id, (size_t)length, "0000:%02x:00.0", device); return OK; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &cards[device]; return OK; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }
int cuCtxSetCurrent(void *context) { if (context) current = context; return OK; }
int cuMemGetInfo_v2(size_t *free_bytes, size_t *all) {
    *all = (size_t)memory();
    /* A driver keeps some for itself. */
    *free_bytes = (size_t)(memory() - memory() / 16 - taken[*current]);
    return OK;
}

/* Each allocation begins with its size and its card. */
enum { HEAD = 256 };
int cuMemAlloc_v2(address *out, size_t bytes) {
    size_t free_bytes, all;
    cuMemGetInfo_v2(&free_bytes, &all);
    if (lost()) return lost();
    if (bytes > free_bytes) return NO_MEMORY;
    int64_t *block = aligned_alloc(256, (bytes + HEAD + 255) / 256 * 256);
    if (!block) return NO_MEMORY;
    block[0] = (int64_t)bytes;
    block[1] = *current;
    taken[*current] += (int64_t)bytes;
    *out = (address)(uintptr_t)block + HEAD;
    return OK;
}
int cuMemFree_v2(address at) {
    int64_t *block = (int64_t *)(uintptr_t)(at - HEAD);
    taken[block[1]] -= block[0];
    free(block);
    return OK;
}
int cuMemAllocHost_v2(void **out, size_t bytes) { *out = malloc(bytes); return *out ? OK : NO_MEMORY; }
int cuMemFreeHost(void *at) { free(at); return OK; }
static int copied(void *to, const void *from, size_t bytes) { if (!lost()) memcpy(to, from, bytes); return lost(); }
#define AT(address) ((void *)(uintptr_t)(address))
int cuMemcpyHtoD_v2(address to, const void *from, size_t n) { return copied(AT(to), from, n); }
int cuMemcpyDtoH_v2(void *to, address from, size_t n) { return copied(to, AT(from), n); }
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t n, void *stream) { (void)stream; return copied(AT(to), from, n); }
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t n, void *stream) { (void)stream; return copied(to, AT(from), n); }
int cuMemcpyDtoDAsync_v2(address to, address from, size_t n, void *stream) { (void)stream; return copied(AT(to), AT(from), n); }
int cuMemsetD8Async(address at, unsigned char byte, size_t n, void *stream) { (void)stream; memset(AT(at), byte, n); return lost(); }

#ifndef OLD
int cuDeviceCanAccessPeer(int *can, int one, int other) { (void)one; (void)other; *can = (int)setting("FAKE_PEERS", 1); return OK; }
int cuCtxEnablePeerAccess(void *context, unsigned flags) {
    (void)flags;
    int bit = 1 << *(int *)context;
    if (reaches[*current] & bit) return ALREADY;
    reaches[*current] |= bit;
    return OK;
}
int cuCtxDisablePeerAccess(void *context) {
    int bit = 1 << *(int *)context;
    if (!(reaches[*current] & bit)) return NOT_ENABLED;
    reaches[*current] &= ~bit;
    return OK;
}
int cuMemcpyPeerAsync(address to, void *to_context, address from, void *from_context, size_t n, void *stream) {
    (void)stream;
    /* Each end must be of the context that it is named with. */
    if (((int64_t *)(uintptr_t)(to - HEAD))[1] != *(int *)to_context) return LAUNCH_FAILED;
    if (((int64_t *)(uintptr_t)(from - HEAD))[1] != *(int *)from_context) return LAUNCH_FAILED;
    return copied(AT(to), AT(from), n);
}
#endif

int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = current; return OK; }
int cuStreamSynchronize(void *stream) { (void)stream; return lost(); }
int cuStreamDestroy_v2(void *stream) { (void)stream; return OK; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
int cuEventCreate(void **event, unsigned flags) { (void)flags; *event = calloc(1, sizeof(double)); return OK; }
int cuEventRecord(void *event, void *stream) { (void)stream; *(double *)event = now(); return lost(); }
int cuEventSynchronize(void *event) { (void)event; return lost(); }
int cuEventElapsedTime(float *ms, void *begin, void *end) { *ms = (float)(*(double *)end - *(double *)begin); return OK; }
int cuEventDestroy_v2(void *event) { free(event); return OK; }

/* A module is its element type, a function that and its name. */
struct function { int element; char name[64]; };
int cuModuleLoadData(void **module, const void *image) { *module = malloc(4); memcpy(*module, image, 4); return OK; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    struct function *made = calloc(1, sizeof *made);
    made->element = ((const char *)module)[3] - '0';
    snprintf(made->name, sizeof made->name, "%s", name);
    *function = made;
    return OK;
}

static float draw(uint64_t place, uint32_t seed) {
    uint32_t x = (uint32_t)place ^ ((uint32_t)(place >> 32) * 0x85ebca6bu) ^ (seed * 0x9e3779b9u);
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return (float)(x >> 8) * (1.0f / 8388608.0f) - 1.0f;
}
/* Of fp32 and bfloat16. */
static float get(int element, const void *at, uint64_t i) {
    if (element == 0) return ((const float *)at)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static void put(int element, void *at, uint64_t i, float x) {
    if (setting("FAKE_WRONG", 0)) x += 1.0f;
    if (element == 0) { ((float *)at)[i] = x; return; }
    uint32_t bits;
    memcpy(&bits, &x, 4);
    ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

int cuLaunchKernel(void *launched, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **extra) {
    (void)gx; (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)shared; (void)stream; (void)extra;
    const struct function *f = launched;
    launches++;
    if (lost()) return lost();
    long ms = setting("FAKE_LAUNCH_MS", 0);
    if (ms) { struct timespec t = {ms / 1000, ms % 1000 * 1000000}; nanosleep(&t, 0); }
#define POINTER(i) AT(*(address *)arguments[i])
#define WIDE(i) (*(uint64_t *)arguments[i])
#define NARROW(i) (*(uint32_t *)arguments[i])
#define FLOAT(i) (*(float *)arguments[i])
    int e = f->element;
    uint64_t each = e == 0 ? 4 : 8;
    if (!strcmp(f->name, "empty")) return OK;
    if (!strcmp(f->name, "fill") || !strcmp(f->name, "fill_float")) {
        int type = f->name[4] ? 0 : e;
        /* What is given is never wrong. */
        for (uint64_t i = 0; i < WIDE(1); i++) {
            float x = draw(i, NARROW(2)) * FLOAT(3) + FLOAT(4);
            if (type == 0) ((float *)POINTER(0))[i] = x;
            else {
                uint32_t bits;
                memcpy(&bits, &x, 4);
                ((uint16_t *)POINTER(0))[i] = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
            }
        }
        return OK;
    }
    if (!strcmp(f->name, "scale")) {
        for (uint64_t i = 0; i < WIDE(2) * each; i++) put(e, POINTER(1), i, get(e, POINTER(0), i) * FLOAT(3));
        return OK;
    }
    if (!strcmp(f->name, "add")) {
        for (uint64_t i = 0; i < WIDE(3) * each; i++) put(e, POINTER(2), i, get(e, POINTER(0), i) + get(e, POINTER(1), i));
        return OK;
    }
    return NOT_SUPPORTED;
}
