// A management library for tests: two devices, whose behaviour fake_nvml_mode() decides. The
// structures are written once more, so that one slip in nvml.cc does not hide itself.
#include <cstdio>
#include <cstring>

namespace {

enum Mode { kHealthy = 0, kSecondLost = 1, kNoInit = 2, kManyProcesses = 3, kNoOwners = 4 };
int mode = kHealthy;
int running = 0;

struct Device {
  unsigned index;
};
Device devices[2] = {{0}, {1}};

struct Memory {
  unsigned long long total, free, used;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu, compute;
};

}  // namespace

extern "C" {

void fake_nvml_mode(int next) {
  mode = next;
}
int fake_nvml_running() {
  return running;
}

int nvmlInit_v2() {
  if (mode == kNoInit) return 9;
  ++running;
  return 0;
}
int nvmlShutdown() {
  --running;
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == 9 ? "Driver Not Loaded" : "Unknown Error";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  if (index > 1) return 2;
  if (index == 1 && mode == kSecondLost) return 15;
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetUUID(Device* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%u", device->index);
  return 0;
}
int nvmlDeviceGetName(Device* /*device*/, char* text, unsigned size) {
  std::snprintf(text, size, "Fake RTX");
  return 0;
}
int nvmlDeviceGetPciInfo_v3(Device* device, Pci* pci) {
  *pci = {};
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:0%u:00.0", device->index + 1);
  return 0;
}
int nvmlDeviceGetMemoryInfo(Device* /*device*/, Memory* memory) {
  *memory = {1000, 400, 600};
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device* /*device*/, unsigned* count, Process* to) {
  const unsigned there = mode == kManyProcesses ? 100 : 2;
  if (*count < there) {
    *count = there;
    return 7;
  }
  *count = there;
  for (unsigned i = 0; i < there; ++i) {
    to[i] = {10 + i, mode == kNoOwners ? ~0ULL : 100 + i, 0, 0};
  }
  return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(Device* /*device*/, unsigned* count, Process* to) {
  *count = 1;
  to[0] = {10, 250, 0, 0};
  return 0;
}
}
