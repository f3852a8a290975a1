#pragma once

#include <string>
#include <string_view>

#include "supervisor/core/ledger/failure_record.h"

namespace berth::store {

// What of a failure's record has no column of its own, as one JSON object, so that an operator can
// read it with sqlite3. What is no UTF-8 is made printable; names of files in the provenance come
// back as they were.
std::string encode_failure(const core::FailureRecord& record);
// Into `record`, whose columns are set. Parts that are missing or of another kind stay as they are:
// they may come from another version of berth.
void decode_failure(std::string_view json, core::FailureRecord& record);

// What of a Lift has no column of its own.
std::string encode_lift(const core::Lift& lift);
void decode_lift(std::string_view json, core::Lift& lift);

}  // namespace berth::store
