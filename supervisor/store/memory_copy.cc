#include "supervisor/store/memory_copy.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace berth::store {
namespace {

constexpr int kBusyMs = 2000;

std::uintmax_t size_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// What has a meaning in a URI is written as its number.
std::string to_uri(const std::string& path) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string uri = "file:";
  for (const char c : path) {
    if (c != '?' && c != '#' && c != '%') {
      uri += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    uri += '%';
    uri += kHex[byte >> 4U];
    uri += kHex[byte & 15U];
  }
  return uri;
}

SQLite::Database open_unchanged(const std::string& path) {
  // Without a log there is nothing but the file, and SQLite need not make one.
  if (size_of(path + "-wal") == 0) {
    return {to_uri(path) + "?immutable=1", SQLite::OPEN_READONLY | SQLite::OPEN_URI, kBusyMs};
  }
  SQLite::Database file(path, SQLite::OPEN_READWRITE, kBusyMs);
  // Before the first access: the index of the log is then in memory instead of a third file
  // (https://www.sqlite.org/wal.html#noshm).
  file.exec("PRAGMA locking_mode = EXCLUSIVE");
  ::sqlite3_db_config(file.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return file;
}

}  // namespace

SQLite::Database copy_in_memory(const std::string& path) {
  SQLite::Database file = open_unchanged(path);
  SQLite::Database memory(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMs);
  SQLite::Backup backup(memory, file);
  if (const int code = backup.executeStep(-1); code != SQLITE_DONE) {
    throw SQLite::Exception("it cannot be read into memory", code);
  }
  return memory;
}

}  // namespace berth::store
