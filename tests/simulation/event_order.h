#pragma once

#include <map>
#include <string>

#include "common/clock.h"
#include "common/event.h"

namespace berth::sim {

// Watches the events of instances: each carries its id, their order is legal, each load ends once
// and each process exits once. At most one failure of a model stands, and as long as it does no
// load begins.
class EventOrder {
 public:
  explicit EventOrder(const Clock& clock) : clock_(clock) {}

  // What is wrong with it; empty: nothing.
  std::string on_event(const Event& event);
  // What is missing when everything has come to rest.
  [[nodiscard]] std::string at_rest() const;

  // When a ready instance of the model died last; min() where none did.
  [[nodiscard]] SteadyTime last_death(const std::string& model) const;
  // A failure of the model stands.
  [[nodiscard]] bool stands(const std::string& model) const { return standing_.contains(model); }
  // When an instance of the model was last seen to end, or to be stopped; min() where none was.
  [[nodiscard]] SteadyTime last_end(const std::string& model) const;

 private:
  std::string on_failure(const Event& event);

  struct Seen {
    std::string model;
    bool process = false;
    bool ready = false;
    bool ended = false;  // ready, failed or interrupted
    bool stopping = false;
    bool died = false;
    bool stuck = false;
    bool exited = false;
  };

  const Clock& clock_;
  std::map<std::string, Seen> seen_;             // by instance
  std::map<std::string, std::string> standing_;  // the failure's record, by model
  std::map<std::string, SteadyTime> deaths_;
  std::map<std::string, SteadyTime> moved_;  // when what a failure depended on was another
  std::map<std::string, SteadyTime> ends_;
};

}  // namespace berth::sim
