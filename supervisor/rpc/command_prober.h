#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/rpc/command_answers.h"
#include "supervisor/rpc/command_call.h"
#include "supervisor/rpc/command_peer.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// What proves that a command worker is ready (L6). An answer to /health is not among them.
enum class ProbeKind : std::uint8_t { kCompletion, kEmbedding, kPath };

struct CommandProbe {
  ProbeKind kind = ProbeKind::kCompletion;
  std::string path;   // of kPath: must answer 200
  std::string model;  // where the program does not say what it calls its model
};

// Asks a program until it has done a real piece of its work, then says that it is ready; what it
// says of itself is not trusted further than that. The piece of work has no time of its own, as a
// first one may compile for minutes: whoever watches the load says when it has waited enough (L7);
// it is asked for again beside, after a minute, and then each time after twice as long, as a
// request may get lost. Before each request, and once more after the proof, it is looked who
// listens there: nothing is sent to another process and nothing is believed of one (L27). One look
// sees several moments, so that only some in a row that see a stranger fail the load.
//
// Looks and asks, one thing at a time, until the program is ready, a stranger answers, or it is
// destroyed. Core strand only. `observer` outlives it; its callbacks come from timers and answers,
// never from within the constructor.
class CommandProber {
 public:
  // What the program calls its model is left in `session` before it is ready.
  CommandProber(std::shared_ptr<CommandSession> session, CommandProbe probe,
                std::uint32_t sequences, WorkerObserver& observer);
  CommandProber(const CommandProber&) = delete;
  CommandProber& operator=(const CommandProber&) = delete;
  ~CommandProber() = default;

 private:
  using Then = void (CommandProber::*)(const Result<CommandAnswer>&);

  void look();
  void on_look(CommandListener listener);
  void try_later();
  void saw(const std::string& what) { observer_.on_probe(what); }
  void saw(const Result<CommandAnswer>& answer);
  void call(const CommandRequest& request, Then then);
  void on_asked();
  void on_answer(const Result<CommandAnswer>& answer);
  void ask();
  void take_models(const Result<CommandAnswer>& answer);
  void on_models(const Result<CommandAnswer>& answer);
  void on_models_of_a_proven_one(const Result<CommandAnswer>& answer);
  void ask_for_work();
  void work(const CommandRequest& request);
  void ask_beside();
  void on_held(const Result<CommandAnswer>& answer);
  void on_work(const Result<CommandAnswer>& answer);
  [[nodiscard]] bool proves(const std::string& body) const;
  void on_proven();
  void be_ready();

  const std::shared_ptr<CommandSession> session_;
  Clock& clock_;
  CommandPeer& peer_;
  const CommandProbe probe_;
  const std::uint32_t sequences_;
  WorkerObserver& observer_;
  Duration pause_;
  Duration beside_pause_;
  std::optional<SteadyTime> answers_since_;
  int strangers_ = 0;  // looks in a row that saw one
  bool proven_ = false;
  bool asked_name_ = false;
  bool chat_ = false;  // the program has no plain completions
  ServedModel served_;
  std::uint64_t works_ = 0;        // pieces of work that were asked for
  std::uint64_t held_number_ = 0;  // that of held_; 0: none
  // What is waited for; the last members, as they use the others.
  Timer beside_;
  Timer held_;  // a question that is not answered for long
  Timer pending_;
};

}  // namespace berth::rpc
