#include "supervisor/memory/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>

namespace berth::memory {
namespace {

// NVML's own types, as far as they are used; their layout is a promise of its ABI.
using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kInsufficientSize = 7;
using Device = struct DeviceTag*;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
  unsigned int pci_subsystem_id;
  std::array<char, 32> bus_id;
};

struct ProcessInfo {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};
constexpr unsigned long long kNotAvailable = ULLONG_MAX;

// Bounds on what a driver may claim.
constexpr unsigned int kMostDevices = 64;
constexpr unsigned int kMostProcesses = 4096;

using ListProcesses = Return (*)(Device, unsigned int*, ProcessInfo*);

template <std::size_t size>
std::string text_of(const std::array<char, size>& field) {
  return {field.data(), ::strnlen(field.data(), field.size())};
}

}  // namespace

struct Nvml::Calls {
  Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    if (started) shutdown();
    if (library != nullptr) ::dlclose(library);
  }

  template <typename Function>
  bool find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, symbol));
    return function != nullptr;
  }

  [[nodiscard]] std::string describe(Return code) const {
    const char* const text = error_text(code);
    return text == nullptr ? "error " + std::to_string(code) : text;
  }

  void add_processes(Device device, ListProcesses list, std::vector<DeviceProcess>& all,
                     bool& known) const;

  void* library = nullptr;
  bool started = false;
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_text)(Return) = nullptr;
  Return (*count)(unsigned int*) = nullptr;
  Return (*handle)(unsigned int, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned int) = nullptr;
  Return (*name)(Device, char*, unsigned int) = nullptr;
  Return (*pci)(Device, PciInfo*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  // Old drivers lack them: then nobody says whose the memory is.
  ListProcesses compute_processes = nullptr;
  ListProcesses graphics_processes = nullptr;
};

// A process that computes and draws is in both lists, with the same number.
void Nvml::Calls::add_processes(Device device, ListProcesses list, std::vector<DeviceProcess>& all,
                                bool& known) const {
  if (list == nullptr) {
    known = false;
    return;
  }
  std::vector<ProcessInfo> infos(64);
  Return code = kInsufficientSize;
  // It may grow between two calls.
  for (int attempt = 0; attempt < 3 && code == kInsufficientSize; ++attempt) {
    auto size = static_cast<unsigned int>(infos.size());
    code = list(device, &size, infos.data());
    size = std::min(size, kMostProcesses);
    if (code == kInsufficientSize) infos.resize(std::max<std::size_t>(size, infos.size()) * 2);
    if (code == kSuccess) infos.resize(std::min<std::size_t>(size, infos.size()));
  }
  if (code != kSuccess) {
    known = false;
    return;
  }
  for (const ProcessInfo& info : infos) {
    if (info.used == kNotAvailable) {
      known = false;
      continue;
    }
    const auto pid = static_cast<pid_t>(info.pid);
    const auto same = std::ranges::find(all, pid, &DeviceProcess::pid);
    if (same == all.end()) {
      all.push_back({pid, info.used});
    } else {
      same->bytes = std::max<std::uint64_t>(same->bytes, info.used);
    }
  }
}

Nvml::Nvml(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}
Nvml::~Nvml() = default;

Result<std::unique_ptr<Nvml>> Nvml::open(const std::string& library) {
  auto calls = std::make_unique<Calls>();
  calls->library = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (calls->library == nullptr) {
    return fail(Reason::kNotFound, "There is no " + library + ".");
  }
  const bool all = calls->find("nvmlInit_v2", calls->init) &&
                   calls->find("nvmlShutdown", calls->shutdown) &&
                   calls->find("nvmlErrorString", calls->error_text) &&
                   calls->find("nvmlDeviceGetCount_v2", calls->count) &&
                   calls->find("nvmlDeviceGetHandleByIndex_v2", calls->handle) &&
                   calls->find("nvmlDeviceGetUUID", calls->uuid) &&
                   calls->find("nvmlDeviceGetName", calls->name) &&
                   calls->find("nvmlDeviceGetPciInfo_v3", calls->pci) &&
                   calls->find("nvmlDeviceGetMemoryInfo", calls->memory);
  if (!all)
    return fail(Reason::kInternal, library + " lacks calls that berth needs: it is too old.");
  calls->find("nvmlDeviceGetComputeRunningProcesses_v3", calls->compute_processes);
  calls->find("nvmlDeviceGetGraphicsRunningProcesses_v3", calls->graphics_processes);
  const Return code = calls->init();
  if (code != kSuccess) {
    return fail(Reason::kInternal, library + " cannot be used: " + calls->describe(code) + '.');
  }
  calls->started = true;
  return std::unique_ptr<Nvml>(new Nvml(std::move(calls)));
}

Result<std::vector<DeviceReading>> Nvml::read() const {
  unsigned int count = 0;
  if (const Return code = calls_->count(&count); code != kSuccess) {
    return fail(Reason::kInternal,
                "NVIDIA's driver does not count its devices: " + calls_->describe(code) + '.');
  }
  std::vector<DeviceReading> readings;
  for (unsigned int i = 0; i < std::min(count, kMostDevices); ++i) {
    DeviceReading& reading = readings.emplace_back();
    Device device = nullptr;
    if (calls_->handle(i, &device) != kSuccess) {
      reading.lost = true;
      continue;
    }
    std::array<char, 96> text{};
    if (calls_->uuid(device, text.data(), text.size()) == kSuccess) reading.uuid = text_of(text);
    text = {};
    if (calls_->name(device, text.data(), text.size()) == kSuccess) reading.name = text_of(text);
    PciInfo pci{};
    if (calls_->pci(device, &pci) == kSuccess) reading.pci = text_of(pci.bus_id);
    Memory memory{};
    if (calls_->memory(device, &memory) != kSuccess) {
      reading.lost = true;
      continue;
    }
    reading.total = memory.total;
    reading.used = std::min(memory.used, memory.total);
    std::vector<DeviceProcess> processes;
    bool known = true;
    calls_->add_processes(device, calls_->compute_processes, processes, known);
    calls_->add_processes(device, calls_->graphics_processes, processes, known);
    if (known) reading.processes = std::move(processes);
  }
  return readings;
}

}  // namespace berth::memory
