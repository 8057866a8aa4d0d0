/* A run-time compiler that compiles nothing, for tests: its code is the element type that was asked for. */
#include <string.h>
#include <stdlib.h>

int nvrtcVersion(int *major, int *minor) { *major = 13; *minor = 0; return 0; }
int nvrtcCreateProgram(void **program, const char *source, const char *name, int n, const char *const *headers, const char *const *names) {
    (void)source; (void)name; (void)n; (void)headers; (void)names;
    *program = calloc(1, 4);
    return 0;
}
int nvrtcCompileProgram(void *program, int n, const char *const *options) {
    memcpy(program, "cub0", 4);
    for (int i = 0; i < n; i++)
        if (!strncmp(options[i], "-DELEMENT=", 10)) ((char *)program)[3] = options[i][10];
    return getenv("FAKE_NO_COMPILE") ? 6 : 0;
}
int nvrtcGetProgramLogSize(void *program, size_t *size) { (void)program; *size = 32; return 0; }
int nvrtcGetProgramLog(void *program, char *log) { (void)program; strcpy(log, "error: sm_90 is not known\n"); return 0; }
int nvrtcGetCUBINSize(void *program, size_t *size) { (void)program; *size = 4; return 0; }
int nvrtcGetCUBIN(void *program, char *image) { memcpy(image, program, 4); return 0; }
int nvrtcDestroyProgram(void **program) { free(*program); return 0; }
