#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "tests/fault_worker/fault_script.h"

namespace berth::fault {

// What a process can do to itself and to its machine. Any thread; each ends when it is done.

void write_all(int fd, std::string_view text);
void sleep_for(Duration time);
// For ever.
[[noreturn]] void stall();
// As the kernel would do it: with the signal's default action.
[[noreturn]] void die_by(int signal);

void copy_to_stderr(const std::string& file);
// Numbered lines, at least so many bytes.
void flood(std::uint64_t bytes);
void wait_for_file(const std::string& file);
void touch(const std::string& file);
// Reads a file over and over at a rate, past the page cache where the kernel lets it go.
void read_slowly(const std::string& file, std::uint64_t bytes_per_second, Duration time);
void burn(std::uint64_t percent, Duration time);
void leak(std::uint64_t bytes_per_second, std::uint64_t bytes);
// Children that wait for ten minutes, so that none is left for ever behind a broken test.
void spawn(const Order& order);

}  // namespace berth::fault
