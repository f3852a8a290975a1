#include "worker/service/host.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <utility>

#include "common/durations.h"
#include "common/text.h"
#include "worker/lanes/proof.h"
#include "worker/service/worker_service.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;

constexpr auto kHeartbeat = milliseconds(1000);
constexpr auto kNoSupervisor = milliseconds(2000);  // wait for one that wants to hear of a failure
constexpr auto kFailureBound = milliseconds(5000);  // ditto, when it has connected
constexpr auto kStopBound = milliseconds(2000);     // for running work to hear that it has ended
constexpr auto kFlushBound = milliseconds(500);     // for last messages to be sent
constexpr auto kProgressInterval = milliseconds(100);
constexpr auto kProgressPause = milliseconds(20);  // a quick load is not slowed by its own reports
constexpr float kProgressStep = 0.01F;
constexpr int kMaxMessageBytes = 256 << 20;  // as the supervisor sends and takes them
constexpr std::size_t kStdinBytes = 256;

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// Whether the other end of stdin is gone. What comes from there means nothing.
bool stdin_ended() {
  std::array<char, kStdinBytes> bytes;  // NOLINT(*-member-init): thrown away
  const auto size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  return size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN);
}

}  // namespace

void Host::block_signals() {
  const auto set = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Host::Host(Options options, ListenSocket socket, tl::expected<TemplateChoice, LoadFailure> choice,
           EngineLoader loader)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      loader_(loader),
      runner_(*this),
      preparer_(runner_, choice ? std::move(*choice) : TemplateChoice{}),
      hub_(options_.instance,
           ControlHub::Handlers{[this] {
                                  cancel_load_ = true;
                                  wake_main();
                                },
                                [this] { runner_.drain(); },
                                [this] {
                                  failure_sent_ = true;
                                  wake_main();
                                },
                                [this](std::uint32_t threads) { runner_.set_threads(threads); }}),
      heart_([this] { return heartbeat(); },
             [this](const v1::Heartbeat& beat) { hub_.tell_heartbeat(beat); }),
      service_(std::make_unique<WorkerService>(hub_, preparer_, runner_)) {
  if (!choice) refused_ = std::move(choice).error();
  const auto set = ending_signals();
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

Host::~Host() = default;

int Host::run() {
  context_ = std::thread([this] {
    // By itself: another thread would have to write to /proc, which the sandbox forbids.
    ::pthread_setname_np(::pthread_self(), "context");
    context_thread();
  });
  context_.detach();
  announce_listening();  // connections wait in the socket's backlog until the server is there
  start_server();

  auto next_beat = steady_now() + kHeartbeat;
  while (true) {
    std::array<pollfd, 4> fds = {{
        {options_.parent_stdin ? STDIN_FILENO : -1, POLLIN, 0},
        {signals_.get(), POLLIN, 0},
        {socket_.fd(), POLLIN, 0},
        {wake_.get(), POLLIN, 0},
    }};
    const auto activity = runner_.activity();
    const bool working = activity.active + activity.waiting > 0;
    const bool failed = state_ == State::kLoadFailed;
    int timeout = -1;
    if (working) {
      const auto left = std::chrono::duration_cast<milliseconds>(next_beat - steady_now()).count();
      timeout = static_cast<int>(std::max<std::int64_t>(0, left + 1));
    } else if (failed) {
      timeout = 50;
    }
    if (::poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR) return finish(1);

    if (fds[0].revents != 0 && stdin_ended()) {
      socket_.remove_name();
      return 0;  // nobody is left who could read another word
    }
    if (fds[1].revents != 0) return finish(0);
    if (fds[2].revents != 0) accept_connections();
    if (fds[3].revents != 0) {
      eventfd_t count = 0;
      ::eventfd_read(wake_.get(), &count);
    }
    if (cancel_load_ && state_ == State::kLoading) return finish(0);
    if (state_ == State::kLoadFailed) {
      if (failed_at_ == SteadyTime{}) failed_at_ = steady_now();
      if (failure_settled()) return finish(1);
    }
    if (steady_now() >= next_beat) {
      next_beat = steady_now() + kHeartbeat;
      // Where all wait for their clients, the context thread has nothing to do but to say that it
      // lives: with the next beat.
      if (service_->pauses().streams > 0) runner_.wake();
      if (working) heart_.beat();
    }
  }
}

void Host::start_server() {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
}

void Host::announce_listening() {
  if (options_.notify_fd < 0) return;
  constexpr std::string_view kLine = "listening\n";
  [[maybe_unused]] const auto written = ::write(options_.notify_fd, kLine.data(), kLine.size());
  ::close(options_.notify_fd);
}

void Host::accept_connections() {
  while (auto connection = socket_.accept()) {
    grpc::AddInsecureChannelFromFd(server_.get(), connection.release());
  }
}

bool Host::failure_settled() const {
  const auto since = steady_now() - failed_at_;
  return failure_sent_ || since >= kFailureBound || (since >= kNoSupervisor && !hub_.has_stream());
}

// Ends what runs, says the last words, and leaves no socket behind, all within bounds.
int Host::finish(int status) {
  socket_.remove_name();
  cancel_load_ = true;
  runner_.stop();
  preparer_.stop();
  const auto bound = steady_now() + kStopBound;
  while (state_ == State::kServing && !context_ended_ && steady_now() < bound) pause();
  hub_.close();
  // gRPC's own shutdown would wait until clients close their connections.
  const auto flushed = [this] { return !hub_.has_stream() && service_->open_calls() == 0; };
  const auto flush_bound = steady_now() + kFlushBound;
  while (!flushed() && steady_now() < flush_bound) pause();
  return status;
}

void Host::pause() const {
  pollfd woken{wake_.get(), POLLIN, 0};
  ::poll(&woken, 1, 1);
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
}

void Host::wake_main() {
  ::eventfd_write(wake_.get(), 1);
}

// --- context thread

void Host::context_thread() {
  if (refused_) return load_failed(*refused_);
  const auto begin = steady_now();
  auto engine = loader_(options_.engine, *this);
  if (!engine) {
    load_failed(engine.error());
    return;
  }
  engine_ = std::move(*engine);
  on_progress(LoadProgress{"warmup"});
  const auto loaded = steady_now();
  const auto proof = options_.prove_micro_batch ? Proof::kMicroBatch : Proof::kOneToken;
  const auto proven = engine_->do_within_load(
      [&] { return prove(*engine_, proof, [this] { return cancel_load_.load(); }); });
  if (!proven) {
    auto failure = proven.error();
    failure.cancelled = cancel_load_.load();
    return load_failed(failure);
  }
  announce_ready(whole_microseconds(loaded - begin), whole_microseconds(steady_now() - loaded));
  runner_.run(*engine_);
  context_ended_ = true;
  wake_main();
}

void Host::load_failed(const LoadFailure& failure) {
  if (!failure.cancelled) {
    v1::LoadFailed message;
    message.set_class_(failure.failure_class);
    message.set_reason(failure.reason);
    hub_.tell_load_failed(std::move(message));
    state_ = State::kLoadFailed;
  }
  wake_main();
}

void Host::announce_ready(std::uint64_t load_us, std::uint64_t warmup_us) {
  const auto& facts = engine_->facts();
  v1::Ready ready;
  ready.set_protocol(1);
  ready.set_build_id(facts.build_id);
  ready.set_window(facts.window);
  ready.set_sequences(facts.sequences);
  ready.set_vocabulary(facts.vocabulary);
  ready.set_longest_token_bytes(preparer_.longest_token_bytes());
  ready.set_can_chat(preparer_.has_template());
  for (const auto& use : facts.memory) {
    auto& memory = *ready.add_memory();
    memory.set_domain(use.domain);
    memory.set_weights_bytes(use.weights_bytes);
    memory.set_mapped_bytes(use.mapped_bytes);
    memory.set_kv_bytes(use.kv_bytes);
    memory.set_working_bytes(use.working_bytes);
  }
  ready.set_load_us(load_us);
  ready.set_warmup_us(warmup_us);
  ready.set_threads(facts.threads);
  ready.set_can_generate(facts.purpose == Purpose::kGenerate);
  ready.set_can_embed(facts.embedding_size > 0);
  ready.set_embedding_size(facts.embedding_size);
  ready.set_pooling(facts.pooling);
  for (const auto& device : facts.devices) ready.add_devices(device);
  ready.set_device_layers(facts.device_layers);
  ready.set_layers(facts.layers);
  ready.set_draft_tokens(facts.draft_tokens);
  state_ = State::kServing;
  hub_.tell_ready(std::move(ready));
}

void Host::on_progress(const LoadProgress& progress) {
  const auto now = steady_now();
  const auto since = now - told_at_;
  const bool moved = progress.fraction - told_.fraction >= kProgressStep;
  if (progress.phase == told_.phase && since < (moved ? kProgressPause : kProgressInterval)) {
    return;
  }
  told_ = progress;
  told_at_ = now;
  v1::Progress message;
  message.set_phase(std::string(progress.phase));
  message.set_fraction(progress.fraction);
  message.set_bytes_done(progress.bytes_done);
  message.set_bytes_total(progress.bytes_total);
  hub_.tell_progress(message);
}

void Host::on_vocabulary(const Engine& engine) {
  preparer_.start(engine);
}

// --- any thread

void Host::on_activity() {
  heart_.beat();
  wake_main();
}

void Host::on_drained() {
  hub_.tell_drained();
}

v1::Heartbeat Host::heartbeat() const {
  const auto activity = runner_.activity();
  v1::Heartbeat heartbeat;
  const auto& pauses = service_->pauses();
  heartbeat.set_progress(runner_.progress() + pauses.passed.load());
  heartbeat.set_active(activity.active);
  heartbeat.set_waiting(activity.waiting);
  // Never more than were active a moment ago.
  heartbeat.set_paused(std::min(pauses.streams.load(), activity.active));
  return heartbeat;
}

}  // namespace berth::worker
