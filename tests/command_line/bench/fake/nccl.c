/* Collectives of one process over the host's memory, for tests: what a group holds is done when it ends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS = 16, KINDS = 6 };
enum kind { REDUCE, GATHER, SCATTER, BROADCAST, SEND, RECEIVE };
struct part { int there; const void *from; void *to; size_t count; int type, peer; };
static struct part parts[KINDS][CARDS];
static int places[CARDS], cards;

int ncclGetVersion(int *version) { *version = 22809; return 0; }
const char *ncclGetErrorString(int code) { return code == 3 ? "internal error" : "unhandled system error"; }
int ncclCommInitAll(void **group, int n, const int *devices) {
    if (getenv("FAKE_NCCL_FAILS")) return 3;
    cards = n;
    for (int i = 0; i < n; i++) { places[i] = devices[i]; group[i] = &places[i]; }
    return 0;
}
int ncclCommDestroy(void *group) { (void)group; return 0; }
int ncclGroupStart(void) { memset(parts, 0, sizeof parts); return 0; }

static size_t width(int type) { return type == 7 ? 4 : 2; }
static float get(int type, const void *at, size_t i) {
    if (type == 7) return ((const float *)at)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static void put(int type, void *at, size_t i, float x) {
    if (type == 7) { ((float *)at)[i] = x; return; }
    uint32_t bits;
    memcpy(&bits, &x, 4);
    ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
static void sum(const struct part *all, int card, size_t first) {
    const struct part *mine = &all[card];
    for (size_t i = 0; i < mine->count; i++) {
        float x = 0;
        for (int other = 0; other < cards; other++) x += get(mine->type, all[other].from, first + i);
        put(mine->type, mine->to, i, x);
    }
}
int ncclGroupEnd(void) {
    for (int card = 0; card < cards; card++) {
        struct part *p = &parts[REDUCE][card];
        if (p->there) sum(parts[REDUCE], card, 0);
        p = &parts[SCATTER][card];
        if (p->there) sum(parts[SCATTER], card, (size_t)card * p->count);
        p = &parts[GATHER][card];
        for (int other = 0; p->there && other < cards; other++)
            memcpy((char *)p->to + (size_t)other * p->count * width(p->type), parts[GATHER][other].from, p->count * width(p->type));
        p = &parts[BROADCAST][card];
        if (p->there) memcpy(p->to, parts[BROADCAST][p->peer].from, p->count * width(p->type));
        p = &parts[RECEIVE][card];
        if (p->there) {
            const struct part *sent = &parts[SEND][p->peer];
            if (!sent->there || sent->peer != card || sent->count != p->count) return 3;
            memcpy(p->to, sent->from, p->count * width(p->type));
        }
    }
    return 0;
}
static int add(enum kind kind, const void *from, void *to, size_t count, int type, int peer, void *group, void *stream) {
    int card = *(int *)group;
    /* A stream is its card: that of the communicator. */
    if (*(int *)stream != card) return 3;
    parts[kind][card] = (struct part){1, from, to, count, type, peer};
    return 0;
}
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *group, void *stream) {
    return op ? 3 : add(REDUCE, from, to, n, type, 0, group, stream);
}
int ncclAllGather(const void *from, void *to, size_t n, int type, void *group, void *stream) { return add(GATHER, from, to, n, type, 0, group, stream); }
int ncclReduceScatter(const void *from, void *to, size_t n, int type, int op, void *group, void *stream) {
    return op ? 3 : add(SCATTER, from, to, n, type, 0, group, stream);
}
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, void *group, void *stream) { return add(BROADCAST, from, to, n, type, root, group, stream); }
int ncclSend(const void *from, size_t n, int type, int peer, void *group, void *stream) { return add(SEND, from, 0, n, type, peer, group, stream); }
int ncclRecv(void *to, size_t n, int type, int peer, void *group, void *stream) { return add(RECEIVE, 0, to, n, type, peer, group, stream); }
