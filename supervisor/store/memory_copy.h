#pragma once

#include <string>

namespace SQLite {
class Database;
}

namespace berth::store {

// A database in memory with what the file at `path` holds, for a disk that takes nothing: reading a
// file with a log the usual way first makes another one, which a full disk refuses. The file and
// its log stay as they are. Nobody else may have the file open. It takes as much memory as the file
// is large, which the bounds of what is kept bound. Throws SQLite::Exception: the file is damaged
// or cannot be read.
SQLite::Database copy_in_memory(const std::string& path);

}  // namespace berth::store
