#include "worker/engine/build_id.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace berth::worker {
namespace {

constexpr std::size_t kIdBytes = 8;  // enough to tell builds apart

std::string hex(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text.push_back(kDigits[bytes[i] >> 4U]);
    text.push_back(kDigits[bytes[i] & 15U]);
  }
  return text;
}

std::string build_id(const dl_phdr_info& object) {
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i) {
    const auto& header = object.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto align = std::max<std::size_t>(header.p_align, 4);
    const auto pad = [align](std::size_t size) { return (size + align - 1) / align * align; };
    const auto* at = reinterpret_cast<const unsigned char*>(object.dlpi_addr + header.p_vaddr);
    std::size_t left = header.p_memsz;
    while (left >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto description = pad(sizeof note + note.n_namesz);
      const auto size = pad(description + note.n_descsz);
      if (size > left) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(at + sizeof note, "GNU", 4) == 0) {
        return hex(at + description, std::min<std::size_t>(note.n_descsz, kIdBytes));
      }
      at += size;
      left -= size;
    }
  }
  return "none";
}

struct Search {
  std::string_view program;
  std::string ids;
};

int add_object(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  std::string_view name(object->dlpi_name == nullptr ? "" : object->dlpi_name);
  name.remove_prefix(name.find_last_of('/') + 1);  // npos + 1 is 0
  if (search.ids.empty()) {
    name = search.program;  // the first object is the program
  } else if (name.find("llama") == std::string_view::npos &&
             name.find("ggml") == std::string_view::npos) {
    return 0;
  }
  if (!search.ids.empty()) search.ids.append(", ");
  search.ids.append(name).append(" ").append(build_id(*object));
  return 0;
}

}  // namespace

std::string loaded_build_ids(std::string_view program) {
  Search search{program, {}};
  ::dl_iterate_phdr(&add_object, &search);
  return search.ids;
}

}  // namespace berth::worker
