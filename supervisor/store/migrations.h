#pragma once

#include <string>

#include "common/result.h"

namespace SQLite {
class Database;
}  // namespace SQLite

namespace berth::store {

// The schema that this version of berth works with.
int newest_schema();

// Brings the schema up to date, one numbered step after the other, all or nothing. Throws
// SQLite::Exception. Errors: kConflict where the file, which is called `path`, comes from a newer
// berth; it stays untouched.
Status migrate(SQLite::Database& database, const std::string& path);

}  // namespace berth::store
