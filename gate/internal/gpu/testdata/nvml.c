/* A made NVML with one GPU, for tests of how the library is found and called.
 * $MADE_INIT is what nvmlInit returns. */
#include <stdlib.h>
#include <string.h>

typedef void *device;
struct pci { char legacy[16]; unsigned domain, bus, dev, id, sub; char bus_id[32]; };
struct memory { unsigned version; unsigned long long total, reserved, free, used; };
struct process { unsigned pid; unsigned long long used; unsigned gpu, compute; };

static int text(char *to, unsigned n, const char *s) { strncpy(to, s, n); return 0; }
static int number(unsigned *to, unsigned v) { *to = v; return 0; }

int nvmlInit_v2(void) { const char *s = getenv("MADE_INIT"); return s ? atoi(s) : 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "made"; }
int nvmlSystemGetDriverVersion(char *to, unsigned n) { return text(to, n, "580.1"); }
int nvmlSystemGetProcessName(unsigned pid, char *to, unsigned n) { return text(to, n, "made"); }
int nvmlDeviceGetCount_v2(unsigned *to) { return number(to, 1); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d) { static int one; *d = &one; return 0; }
int nvmlDeviceGetIndex(device d, unsigned *to) { return number(to, 0); }
int nvmlDeviceGetUUID(device d, char *to, unsigned n) { return text(to, n, "GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f"); }
int nvmlDeviceGetName(device d, char *to, unsigned n) { return text(to, n, "made"); }
int nvmlDeviceGetPciInfo_v3(device d, struct pci *to) { return text(to->bus_id, 32, "00000000:0F:00.0"); }
int nvmlDeviceGetCudaComputeCapability(device d, int *major, int *minor) { *major = 9; *minor = 0; return 0; }
int nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *next) { *next = 0; return number(now, 0); }
int nvmlDeviceGetPersistenceMode(device d, unsigned *to) { return number(to, 1); }
int nvmlDeviceGetPowerManagementLimit(device d, unsigned *to) { return number(to, 700000); }
int nvmlDeviceGetPowerUsage(device d, unsigned *to) { return number(to, 77000); }
int nvmlDeviceGetTemperature(device d, int sensor, unsigned *to) { return number(to, 30); }
int nvmlDeviceGetClockInfo(device d, int kind, unsigned *to) { return number(to, 345); }
int nvmlDeviceGetMaxClockInfo(device d, int kind, unsigned *to) { return number(to, 1980); }
int nvmlDeviceGetMemoryInfo_v2(device d, struct memory *to) { to->total = 143771ull << 20; to->used = 0; return 0; }
int nvmlDeviceGetUtilizationRates(device d, unsigned *to) { to[0] = to[1] = 0; return 0; }
int nvmlDeviceGetCurrentClocksEventReasons(device d, unsigned long long *to) { *to = 1; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *n, struct process *to) {
	if (*n < 2) { *n = 2; return 7; }
	*n = 1;
	to[0] = (struct process){4711, 1 << 20, ~0u, ~0u};
	return 0;
}
