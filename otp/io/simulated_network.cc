#include "otp/io/simulated_network.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "otp/io/internal/asio_context.h"
#include "otp/io/internal/simulated_poller.h"
#include "otp/io/internal/socket_impl.h"
#include "otp/runtime/runtime.h"

namespace otp::io {

using otp::internal::self_process;
using otp::internal::SystemImpl;

namespace internal {
namespace {

constexpr int64_t kNotYet = INT64_MAX;  // arrives when the network is no longer stalled

/// A process that waits for something to arrive here: a reader, a writer, or who accepts.
class Waiter {
 public:
  void set(ProcessOperation& operation) { operation_ = &operation; }
  bool waits() const { return operation_ != nullptr; }
  void clear() { operation_ = nullptr, announced_ = false; }
  /// It goes on at `time`; an earlier announcement stands.
  void wake_at(int64_t time, int64_t now) {
    if (operation_ == nullptr || announced_ || time == kNotYet) return;
    announced_ = true;
    if (time <= now) return operation_->complete();
    operation_->complete_at(time);
  }
  void wake() {
    if (operation_ == nullptr) return;
    if (!announced_ || operation_->take_back()) operation_->complete();
    announced_ = true;
  }
  /// The announcement no longer holds.
  void postpone() {
    if (operation_ != nullptr && announced_ && operation_->take_back()) announced_ = false;
  }

 private:
  ProcessOperation* operation_ = nullptr;
  bool announced_ = false;
};

struct Piece {
  int64_t arrives;
  std::string bytes;  // empty: the end of what is sent
};

/// One direction of a connection.
struct Way {
  std::deque<Piece> pieces;
  size_t buffered = 0;
  int64_t last_arrival = 0;
  bool ended = false;  // the writer has shut down
  bool reset = false;
  bool reader_gone = false;
  Waiter reader;
  Waiter writer;

  void wake_reader(int64_t now) {
    if (!pieces.empty()) reader.wake_at(pieces.front().arrives, now);
  }
  void fail() {
    reset = true;
    pieces.clear();
    reader.wake();
    writer.wake();
  }
};

}  // namespace

struct Connection {
  Way ways[2];  // by the side that writes
  Address ends[2];
};

}  // namespace internal

struct SimulatedNetwork::State final : internal::Network,
                                       std::enable_shared_from_this<SimulatedNetwork::State> {
  Options options;
  bool stalled = false;
  std::set<internal::Connection*> connections;
  std::map<uint16_t, class SimulatedListener*> listeners;
  uint16_t next_port = 49152;

  int64_t delay(SystemImpl& system) const {
    const auto spread = static_cast<uint64_t>((options.delay_max - options.delay_min).count()) + 1;
    return options.delay_min.count() + static_cast<int64_t>(system.random() % spread);
  }
  int64_t arrival(SystemImpl& system) const {
    return stalled ? internal::kNotYet : system.now() + delay(system);
  }
  void add_piece(SystemImpl& system, internal::Way& way, std::string bytes) {
    way.last_arrival = std::max(way.last_arrival, arrival(system));
    way.buffered += bytes.size();
    way.pieces.push_back({way.last_arrival, std::move(bytes)});
    way.wake_reader(system.now());
  }

  internal::ListenResult listen(const Address& address) override;
  Async<internal::ConnectResult> connect(Address address, Timeout timeout) override;
};

namespace internal {
namespace {

using State = SimulatedNetwork::State;

class SimulatedSocket final : public SocketImpl {
 public:
  SimulatedSocket(std::shared_ptr<State> state, std::shared_ptr<Connection> connection, int side)
      : state_(std::move(state)), connection_(std::move(connection)), side_(side) {}
  ~SimulatedSocket() override {
    SystemImpl& system = *otp::internal::env().system;
    in().reader.clear();
    out().writer.clear();
    // As TCP: what was sent but not read makes the end a reset.
    if (reset_ || (in().buffered > 0 && !in().reset)) {
      in().fail();
      out().fail();
    } else {
      end(system);
    }
    in().reader_gone = true;
    in().writer.wake();
    if (out().reader_gone) state_->connections.erase(connection_.get());
  }

  bool try_now(SocketOperation& operation) override {
    SystemImpl& system = self_process().system();
    return operation.writes() ? write(system, operation) : read(system, operation);
  }
  void start(SocketOperation& operation) override {
    const int64_t now = self_process().system().now();
    if (operation.writes()) {
      out().writer.set(operation);
      if (out().reset || out().reader_gone || room() > 0) out().writer.wake();
    } else {
      in().reader.set(operation);
      if (in().reset) in().reader.wake();
      in().wake_reader(now);
    }
  }
  void cancel(SocketOperation& operation) noexcept override {
    Waiter& waiter = operation.writes() ? out().writer : in().reader;
    waiter.wake();
  }
  void finished(SocketOperation& operation) override {
    (operation.writes() ? out().writer : in().reader).clear();
  }
  void shutdown_send() override { end(self_process().system()); }
  void set_reset() override { reset_ = true; }
  Address local() const override { return connection_->ends[side_]; }
  Address remote() const override { return connection_->ends[1 - side_]; }

 private:
  Way& in() { return connection_->ways[1 - side_]; }
  Way& out() { return connection_->ways[side_]; }
  size_t room() {
    const size_t window = state_->options.window_bytes;
    return window - std::min(window, out().buffered);
  }
  void end(SystemImpl& system) {
    if (std::exchange(out().ended, true) || out().reset) return;
    state_->add_piece(system, out(), "");
  }

  bool read(SystemImpl& system, SocketOperation& operation) {
    Way& way = in();
    if (way.reset) {
      operation.set_result(std::make_error_code(std::errc::connection_reset), 0);
      return true;
    }
    if (way.pieces.empty() || way.pieces.front().arrives > system.now()) return false;
    Piece& piece = way.pieces.front();
    const size_t size = std::min(piece.bytes.size(), operation.into().size());
    std::memcpy(operation.into().data(), piece.bytes.data(), size);
    operation.set_result({}, size);
    if (piece.bytes.empty()) return true;  // the end stays
    piece.bytes.erase(0, size);
    if (piece.bytes.empty()) way.pieces.pop_front();
    way.buffered -= size;
    way.writer.wake();
    return true;
  }

  bool write(SystemImpl& system, SocketOperation& operation) {
    Way& way = out();
    if (way.reset || way.reader_gone || way.ended) {
      operation.set_result(
          std::make_error_code(way.reset ? std::errc::connection_reset : std::errc::broken_pipe),
          0);
      return true;
    }
    const size_t size = std::min(room(), operation.from().size());
    if (size == 0 && !operation.from().empty()) return false;
    for (size_t sent = 0; sent < size;) {
      const size_t whole = std::min(size - sent, state_->options.piece_bytes_max);
      const size_t piece = 1 + static_cast<size_t>(system.random() % whole);
      state_->add_piece(system, way, std::string(operation.from().substr(sent, piece)));
      sent += piece;
    }
    operation.set_result({}, size);
    return true;
  }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<Connection> connection_;
  const int side_;
  bool reset_ = false;
};

}  // namespace
}  // namespace internal

class SimulatedListener final : public internal::ListenerImpl {
 public:
  SimulatedListener(std::shared_ptr<SimulatedNetwork::State> state, Address address)
      : state_(std::move(state)), address_(std::move(address)) {
    state_->listeners[address_.port] = this;
  }
  ~SimulatedListener() override {
    state_->listeners.erase(address_.port);
    for (Arrived& each : queue_) each.socket.reset();
  }

  Async<Socket> accept() override {
    while (queue_.empty() || queue_.front().at > self_process().system().now()) {
      Waiting waiting(*this);
      co_await waiting;
    }
    Socket socket = std::move(queue_.front().socket);
    queue_.pop_front();
    co_return socket;
  }
  Address local() const override { return address_; }
  uint64_t dropped() const override { return 0; }

  void add(Socket socket, int64_t at, int64_t now) {
    queue_.push_back({std::move(socket), at});
    waiter_.wake_at(queue_.front().at, now);
  }

 private:
  struct Arrived {
    Socket socket;
    int64_t at;
  };
  class Waiting final : public internal::ProcessOperation {
   public:
    explicit Waiting(SimulatedListener& listener) : listener_(listener) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise>) {
      otp::internal::LibraryScope scope(otp::internal::env());
      enlist();
      listener_.waiter_.set(*this);
      if (!listener_.queue_.empty()) {
        listener_.waiter_.wake_at(listener_.queue_.front().at, system().now());
      }
      wait(otp::internal::TimerWheel::kNever);
    }
    void await_resume() {
      otp::internal::LibraryScope scope(otp::internal::env());
      listener_.waiter_.clear();
      finish();
    }

   private:
    void request_cancel() noexcept override { listener_.waiter_.wake(); }
    SimulatedListener& listener_;
  };

  const std::shared_ptr<SimulatedNetwork::State> state_;
  const Address address_;
  std::deque<Arrived> queue_;
  internal::Waiter waiter_;
};

internal::ListenResult SimulatedNetwork::State::listen(const Address& address) {
  Address picked = address;
  while (picked.port == 0 || (address.port == 0 && listeners.contains(picked.port))) {
    picked.port = next_port++;
    if (next_port == 0) next_port = 49152;
  }
  if (listeners.contains(picked.port)) {
    return SystemError{EADDRINUSE, "listen on " + picked.to_string()};
  }
  return std::make_unique<SimulatedListener>(shared_from_this(), picked);
}

Async<internal::ConnectResult> SimulatedNetwork::State::connect(Address address, Timeout timeout) {
  const std::shared_ptr<State> keep = shared_from_this();
  SystemImpl& system = self_process().system();
  const std::string what = "connect to " + address.to_string();
  if (stalled) {  // the request is lost, as its repetitions will be
    co_await otp::sleep(timeout);
    co_return SystemError{ETIMEDOUT, what};
  }
  co_await otp::sleep(Duration(delay(system)));
  const auto found = listeners.find(address.port);
  if (found == listeners.end()) co_return SystemError{ECONNREFUSED, what};
  auto connection = std::make_shared<internal::Connection>();
  connection->ends[0] = Address{"127.0.0.1", next_port++};
  if (next_port == 0) next_port = 49152;
  connection->ends[1] = address;
  connections.insert(connection.get());
  Socket theirs(std::make_unique<internal::SimulatedSocket>(keep, connection, 1));
  found->second->add(std::move(theirs), arrival(system), system.now());
  co_return Socket(std::make_unique<internal::SimulatedSocket>(keep, connection, 0));
}

namespace internal {

Network* this_network() {
  Poller* poller = self_process().system().core(0).poller.get();
  if (dynamic_cast<AsioPoller*>(poller) != nullptr) return &tcp_network();
  auto* simulated = dynamic_cast<SimulatedPoller*>(poller);
  return simulated == nullptr ? nullptr : simulated->network().state().get();
}

}  // namespace internal

SimulatedNetwork::SimulatedNetwork(Options options) : state_(std::make_shared<State>()) {
  state_->options = options;
}

void SimulatedNetwork::reset_connections() {
  for (internal::Connection* each : state_->connections) {
    for (internal::Way& way : each->ways) way.fail();
  }
}

uint64_t SimulatedNetwork::connections_open() const { return state_->connections.size(); }

void SimulatedNetwork::stall(bool stalled) {
  if (std::exchange(state_->stalled, stalled) == stalled) return;
  SystemImpl& system = self_process().system();
  for (internal::Connection* each : state_->connections) {
    for (internal::Way& way : each->ways) {
      way.reader.postpone();
      if (!stalled) way.last_arrival = 0;
      for (internal::Piece& piece : way.pieces) {
        if (stalled && piece.arrives > system.now()) piece.arrives = internal::kNotYet;
        if (!stalled && piece.arrives == internal::kNotYet) {
          way.last_arrival = std::max(way.last_arrival, state_->arrival(system));
          piece.arrives = way.last_arrival;
        } else if (!stalled) {
          way.last_arrival = piece.arrives;
        }
      }
      way.wake_reader(system.now());
    }
  }
}

SystemOptions simulated_options(SystemOptions options, SimulatedNetwork network,
                                SimulatedPrograms programs) {
  options.poller = [network, programs](uint32_t) -> std::unique_ptr<Poller> {
    return std::make_unique<internal::SimulatedPoller>(network, programs);
  };
  return options;
}

}  // namespace otp::io
