#pragma once

#include <functional>
#include <string>

#include "common/keys/key_list.h"
#include "common/result.h"

namespace berth::keys {

// A file of keys as it was read.
struct KeyFile {
  KeyList list;
  std::string warning{};  // what should be put right; empty: nothing
};

// Reads it whole. Blocks on the file system. Others than owner and group may not write to it, or
// anybody could make himself an admin: refused; that they can read it is only a warning, as the
// hash of a random key gives nothing away. Errors, with the file, and the line where there is one,
// and what to do: kNotFound, kPermissionDenied, kInvalidArgument.
Result<KeyFile> read_key_file(const std::string& path);

// Reads, changes and replaces the file, one at a time: whoever reads it sees the old or the new one
// and never a part. Owner, group and mode stay. Where there is none, `create` makes one that only
// its owner reads (made by root: and the group "berth", where there is one). Blocks, for at most
// 10 s on others who change it. Errors: those of read_key_file() and of `change`, after
// which the file is as it was; kConflict (somebody holds it for too long).
Status change_key_file(const std::string& path, bool create,
                       const std::function<Status(KeyList&)>& change);

// What to do where root changed a file that the service could not read, as there is no group
// "berth" or the file system has no owners; empty: nothing. Blocks on the file system.
std::string note_on_readers(const std::string& path);

}  // namespace berth::keys
