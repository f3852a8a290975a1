#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/event.h"

namespace berth {

// "2026-11-29T18:40:01.123Z info server.listening http=…": an event as people read it; with
// terminal colours where `colours` is set.
std::string log_line(const Event& event, bool colours);

// The same event as fields of the journal: MESSAGE, PRIORITY, BERTH_EVENT, and BERTH_MODEL for the
// field `model`, and so on.
std::vector<std::string> journal_fields(const Event& event);

// Whether `variable`, systemd's JOURNAL_STREAM ("device:inode"), says that a descriptor on this
// device and inode is connected to the journal.
bool names_journal_stream(std::string_view variable, std::uint64_t device, std::uint64_t inode);

}  // namespace berth
