#include "otp/io/socket.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "otp/io/asio_poller.h"
#include "otp/io/descriptor.h"
#include "otp/io/simulated_network.h"
#include "otp/runtime/runtime.h"
#include "otp/runtime/system.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;
using io::Listener;
using io::Socket;

namespace {

SystemOptions two_cores() {
  SystemOptions options;
  options.cores = 2;
  return io::system_options(options);
}

/// Runs `test` in the Simulator for some seeds and then on threads with real sockets.
template <class F, class... A>
void everywhere(F test, A... arguments) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed, io::simulated_options());
    simulator.run(test, arguments...);
  }
  System system(two_cores());
  for (int round = 0; round < 5; ++round) system.run(test, arguments...);
}

Listener listen() { return std::get<Listener>(Listener::listen("127.0.0.1:0")); }

Async<Socket> connect(Listener& listener) {
  auto made = co_await Socket::connect(listener.local_address());
  co_return std::get<Socket>(std::move(made));
}

/// Everything until the end of input or an error.
Async<std::string> read_all(Socket& socket, std::error_code* error = nullptr) {
  std::string all;
  std::array<char, 3000> buffer;
  for (;;) {
    const io::Transfer got = co_await socket.read_some(buffer);
    if (error != nullptr) *error = got.error;
    if (got.error || got.at_end()) co_return all;
    all.append(buffer.data(), got.bytes);
  }
}

/// More than the kernel takes without a reader.
const std::string& much() {
  static const std::string bytes(16 << 20, 'x');
  return bytes;
}

struct Text {
  std::string text;
};

Async<ExitReason> end_of(Reference monitor) {
  Down down = co_await receive<Down>([monitor](const Down& d) { return d.reference == monitor; });
  co_return down.reason;
}

}  // namespace

TEST_CASE("addresses are read and written", "[io][socket]") {
  CHECK(io::Address::parse("127.0.0.1:80")->to_string() == "127.0.0.1:80");
  CHECK(io::Address::parse("[::1]:8080")->to_string() == "[::1]:8080");
  CHECK(io::Address::parse("localhost:0")->host == "127.0.0.1");
  for (const char* bad : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80",
                          "[::1]80", "example:80", "127.0.0.1:8x", "127.0.0.1:-1"}) {
    INFO(bad);
    CHECK_FALSE(io::Address::parse(bad));
  }
}

TEST_CASE("what is written arrives whole and in order, then the end", "[io][socket]") {
  everywhere([]() -> Async<void> {
    Listener listener = listen();
    Pid main = self();
    spawn(
        [](Socket socket, Pid to) -> Async<void> {
          (void)send(to, Text{co_await read_all(socket)});
          co_await socket.write("got it");
        },
        co_await connect(listener), main);
    Socket socket = co_await listener.accept();
    std::string sent(300'000, '?');
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 26);
    const io::Transfer written = co_await socket.write(sent);
    CHECK(written.bytes == sent.size());
    socket.shutdown_send();
    Text text = co_await receive<Text>();
    CHECK(text.text == sent);
    CHECK(co_await read_all(socket) == "got it");  // half-closed: the other way is open
  });
}

TEST_CASE("a read gives up in time and can be repeated", "[io][socket]") {
  everywhere([]() -> Async<void> {
    Listener listener = listen();
    Socket far = co_await connect(listener);
    Socket near = co_await listener.accept();
    std::array<char, 16> buffer;
    io::Transfer late = co_await near.read_some(buffer, 5ms);
    CHECK(late.error == std::errc::timed_out);
    co_await far.write("x");
    io::Transfer got = co_await near.read_some(buffer, 1min);
    CHECK(got.bytes == 1);
    far.reset();
    got = co_await near.read_some(buffer, 1min);
    CHECK(got.error == std::errc::connection_reset);
  });
}

TEST_CASE("a writer waits for a reader that does not come, as long as it wants", "[io][socket]") {
  everywhere([]() -> Async<void> {
    Listener listener = listen();
    Socket far = co_await connect(listener);
    Socket near = co_await listener.accept();
    io::Transfer late = co_await near.write(much(), 20ms);
    CHECK(late.error == std::errc::timed_out);
    CHECK(late.bytes < much().size());
    far.close();
    late = co_await near.write(much(), 1min);
    CHECK((late.error == std::errc::connection_reset || late.error == std::errc::broken_pipe));
  });
}

TEST_CASE("a refused connection and a taken port say so", "[io][socket]") {
  everywhere([]() -> Async<void> {
    auto listener = std::make_unique<Listener>(listen());
    const io::Address address = listener->local_address();
    CHECK(std::get<io::SystemError>(Listener::listen(address)).code == EADDRINUSE);
    listener.reset();
    auto refused = co_await Socket::connect(address);
    CHECK(std::get<io::SystemError>(refused).code == ECONNREFUSED);
    CHECK(std::get<io::SystemError>(Listener::listen("nonsense")).code == EINVAL);
    Listener again = std::get<Listener>(Listener::listen(address));
    CHECK(again.local_address() == address);
  });
}

TEST_CASE("killing a process closes its sockets, whatever it does with them",
          "[io][socket][kill]") {
  everywhere([]() -> Async<void> {
    Listener listener = listen();
    for (int round = 0; round < 24; ++round) {
      Socket far = co_await connect(listener);
      auto victim = spawn_monitor(
          [](Socket socket, bool writes) -> Async<void> {
            if (writes) {
              co_await socket.write(much());
            }
            co_await read_all(socket);
          },
          co_await listener.accept(), round % 2 == 0);
      if (round % 3 != 0) co_await otp::sleep(std::chrono::microseconds(round * 10));
      exit(victim.first, ExitReason::kill());
      CHECK((co_await end_of(victim.second)).to_string() == "killed");
      co_await read_all(far);
    }
    auto accepts = spawn_monitor([](Listener l) -> Async<void> { co_await l.accept(); }, listen());
    co_await otp::sleep(1ms);
    exit(accepts.first, ExitReason::kill());
    co_await end_of(accepts.second);
  });
}

TEST_CASE("one seed gives one trace of a network", "[io][socket]") {
  auto hash = [](uint64_t seed) {
    Simulator simulator(seed, io::simulated_options());
    simulator.run([]() -> Async<void> {
      Listener listener = listen();
      Socket far = co_await connect(listener);
      Socket near = co_await listener.accept();
      co_await far.write(std::string(10'000, 'x'));
      far.shutdown_send();
      co_await read_all(near);
    });
    return simulator.trace_hash();
  };
  CHECK(hash(7) == hash(7));
  CHECK(hash(7) != hash(8));
}

TEST_CASE("a virtual network can be reset and stalled", "[io][socket]") {
  io::SimulatedNetwork network;
  Simulator simulator(3, io::simulated_options({}, network));
  simulator.run(
      [](io::SimulatedNetwork* net) -> Async<void> {
        Listener listener = listen();
        Socket far = co_await connect(listener);
        Socket near = co_await listener.accept();
        std::array<char, 16> buffer;
        net->stall(true);
        co_await far.write("x");
        io::Transfer late = co_await near.read_some(buffer, 1h);
        CHECK(late.error == std::errc::timed_out);
        net->stall(false);
        io::Transfer got = co_await near.read_some(buffer, 1s);
        CHECK(got.bytes == 1);
        CHECK(net->connections_open() == 1);
        net->reset_connections();
        got = co_await near.read_some(buffer);
        CHECK(got.error == std::errc::connection_reset);
      },
      &network);
  CHECK(network.connections_open() == 0);
}

TEST_CASE("R-031 out of descriptors a listener neither spins nor stops", "[io][socket]") {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  WARN("the sanitizer itself needs a descriptor to look at a virtual table");
  return;
#endif
#endif
  struct CountingSink final : LogSink {
    std::atomic<int> lines{0};
    bool enabled(LogLevel, std::string_view) const noexcept override { return true; }
    void log(LogRecord&&) noexcept override { ++lines; }
  } sink;
  SystemOptions options = two_cores();
  options.log = &sink;
  System system(options);
  system.run([]() -> Async<void> {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    Listener listener = listen();
    std::vector<Socket> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(co_await connect(listener));
    Socket held = co_await listener.accept();
    auto acceptor = spawn_monitor(
        [](Listener own) -> Async<void> {
          for (;;) {
            Socket socket = co_await own.accept();
            co_await socket.write("served");
          }
        },
        std::move(listener));
    const io::Descriptor free_now(::dup(0));
    const rlimit now{static_cast<rlim_t>(free_now.get()), before.rlim_max};  // all are in use
    ::setrlimit(RLIMIT_NOFILE, &now);
    std::error_code error;
    std::string answer = co_await read_all(clients[5], &error);  // dropped, and it knows
    ::setrlimit(RLIMIT_NOFILE, &before);
    CHECK(answer.empty());
    io::Transfer sent = co_await held.write("still there");
    CHECK(sent.ok());
    CHECK(co_await read_all(clients[19]) == "served");
    exit(acceptor.first, ExitReason::kill());
    co_await end_of(acceptor.second);
  });
  CHECK(sink.lines >= 1);
  CHECK(sink.lines < 20);
}
