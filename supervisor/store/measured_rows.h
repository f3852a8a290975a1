#pragma once

#include <cstddef>

#include "supervisor/store/store.h"

namespace SQLite {
class Database;
}

// The table of measured loads. Everything here throws SQLite::Exception.
namespace berth::store {

// Keeps `most` records, those that changed last.
void put_measured(SQLite::Database& connection, const MeasuredRecord& record, std::size_t most);
// At most `limit`.
MeasuredRecords measured(SQLite::Database& connection, std::size_t limit);

}  // namespace berth::store
