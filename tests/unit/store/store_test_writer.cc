// Writes to a store without end, and says on fd 3 which record is safely in it. For the test that
// kills it. Arguments: the file, the first number.
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <iostream>
#include <string>

#include "supervisor/process/asio_clock.h"
#include "supervisor/store/sqlite_store.h"
#include "tests/unit/store/failure_records.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  boost::asio::io_context io;
  berth::process::AsioClock clock(io);
  berth::store::StoreOptions options;
  options.path = argv[1];
  auto store = berth::store::RealStore::open(options, clock);
  if (!store) {
    std::cerr << store.error().message << "\n";
    return 1;
  }
  const auto work = boost::asio::make_work_guard(io);
  std::uint64_t number = std::stoull(argv[2]);
  std::function<void()> next = [&] {
    for (int i = 0; i < 10; ++i) {
      ++number;
      (*store)->put_event(berth::testing::numbered_event(number, 1));
      (*store)->put_load(berth::testing::load_record(std::to_string(number), "m", 1));
      (*store)->put_failure(berth::testing::full_failure(number, "m"));
      (*store)->put_process({"i" + std::to_string(number % 7), "m", 1, number, "b"});
    }
    // Answered after what was written before it.
    (*store)->processes([&, reached = number](const auto& answer) {
      if (!answer) ::_exit(3);
      const std::string line = std::to_string(reached) + "\n";
      if (::write(3, line.data(), line.size()) < 0) ::_exit(4);
      next();
    });
  };
  next();
  io.run();
  return 0;
}
