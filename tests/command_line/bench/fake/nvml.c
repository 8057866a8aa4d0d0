/* A card's state, for tests. */
#include <stdio.h>
#include <stdlib.h>

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) { (void)id; *device = 0; return 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned length) { snprintf(version, length, "580.1"); return 0; }
int nvmlDeviceGetTemperature(void *device, unsigned which, unsigned *value) { (void)device; (void)which; *value = 40; return 0; }
int nvmlDeviceGetClockInfo(void *device, unsigned which, unsigned *value) { (void)device; (void)which; *value = 1500; return 0; }
int nvmlDeviceGetMaxClockInfo(void *device, unsigned which, unsigned *value) { (void)device; (void)which; *value = 1980; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *value) { (void)device; *value = 700000; return 0; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *value) { (void)device; *value = 100000; return 0; }
int nvmlDeviceGetEccMode(void *device, unsigned *now, unsigned *pending) { (void)device; *now = *pending = 1; return 0; }
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *all) {
    (void)device; (void)all;
    const char *others = getenv("FAKE_OTHERS");
    *count = 1 + (others ? (unsigned)atoi(others) : 0);
    return 7;
}
