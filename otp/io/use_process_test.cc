#include "otp/io/use_process.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "otp/io/asio_poller.h"
#include "otp/runtime/runtime.h"
#include "otp/runtime/system.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using io::use_process;
using io::use_process_result;

SystemOptions two_cores() {
  SystemOptions options;
  options.cores = 2;
  return io::system_options(options);
}

/// Two connected sockets, each on a context of its own.
struct Ends {
  tcp::socket near;
  tcp::socket far;
};
Ends connected_ends(asio::io_context& near_context, asio::io_context& far_context) {
  tcp::acceptor acceptor(near_context, {asio::ip::address_v4::loopback(), 0});
  Ends ends{tcp::socket(near_context), tcp::socket(far_context)};
  ends.far.connect(acceptor.local_endpoint());
  acceptor.accept(ends.near);
  return ends;
}

/// Waits until the process of `monitor` is gone; its reason.
Async<ExitReason> end_of(Reference monitor) {
  Down down = co_await receive<Down>([monitor](const Down& d) { return d.reference == monitor; });
  co_return down.reason;
}

Async<void> wait_on_timer() {
  asio::steady_timer timer(io::this_context(), 1h);
  co_await timer.async_wait(use_process);
}

}  // namespace

TEST_CASE("an operation gives its value to the process that awaits it", "[io]") {
  System system(two_cores());
  system.run(
      [](System* s) -> Async<void> {
        Ends ends = connected_ends(io::context_of(*s, 0), io::context_of(*s, 1));
        std::string text = "hello";
        CHECK(co_await asio::async_write(ends.far, asio::buffer(text), use_process) == 5);
        std::array<char, 16> got{};
        CHECK(co_await ends.near.async_read_some(asio::buffer(got), use_process) == 5);
        CHECK(std::string(got.data(), 5) == text);
        ends.far.shutdown(tcp::socket::shutdown_send);
        auto end = co_await ends.near.async_read_some(asio::buffer(got), use_process_result);
        CHECK(end.error == asio::error::eof);
        CHECK(end.value == 0);
        // Not a second read at the end of the stream: if epoll has told of the end before the first
        // one, Asio waits for ever to be told of it again.
        ends.near.close();
        CHECK_THROWS_AS(co_await ends.near.async_read_some(asio::buffer(got), use_process),
                        boost::system::system_error);
      },
      &system);
}

TEST_CASE("timers of Asio fire while the core has nothing else to do", "[io]") {
  System system(two_cores());
  auto start = std::chrono::steady_clock::now();
  system.run([]() -> Async<void> {
    for (int i = 0; i < 50; ++i) {
      asio::steady_timer timer(io::this_context(), 200us);
      co_await timer.async_wait(use_process);
      co_await otp::sleep(200us);  // the System's own timers, between them
    }
  });
  CHECK(std::chrono::steady_clock::now() - start >= 20ms);
}

TEST_CASE("a process wakes on the other core's context", "[io]") {
  System system(two_cores());
  system.run(
      [](System* s) -> Async<void> {
        for (uint32_t core : {0u, 1u, 0u, 1u}) {
          asio::steady_timer timer(io::context_of(*s, core), 1ms);
          co_await timer.async_wait(use_process);
        }
      },
      &system);
}

TEST_CASE("an operation that takes too long is cancelled", "[io]") {
  System system(two_cores());
  system.run(
      [](System* s) -> Async<void> {
        Ends ends = connected_ends(io::context_of(*s, 0), io::context_of(*s, 1));
        std::array<char, 16> got{};
        auto late = co_await io::with_timeout(
            ends.near.async_read_some(asio::buffer(got), use_process_result), 2ms);
        CHECK(late.error == asio::error::timed_out);
        // The socket is as it was.
        co_await asio::async_write(ends.far, asio::buffer("x", 1), use_process);
        auto read = co_await io::with_timeout(
            ends.near.async_read_some(asio::buffer(got), use_process_result), 1min);
        CHECK(read.value == 1);
        CHECK_THROWS_AS(co_await io::with_timeout(
                            asio::async_read(ends.near, asio::buffer(got), use_process), 2ms),
                        boost::system::system_error);
      },
      &system);
}

TEST_CASE("a user's awaitable is awaited and cancelled like an operation", "[io]") {
  System system(two_cores());
  system.run([]() -> Async<void> {
    auto sum = [](int a) -> asio::awaitable<int> {
      asio::steady_timer timer(co_await asio::this_coro::executor, 100us);
      co_await timer.async_wait(asio::use_awaitable);
      co_return a + 1;
    };
    CHECK(co_await asio::co_spawn(io::this_context(), sum(41), use_process) == 42);
    auto fails = []() -> asio::awaitable<void> {
      throw std::runtime_error("no");
      co_return;
    };
    CHECK_THROWS_AS(co_await asio::co_spawn(io::this_context(), fails(), use_process),
                    std::runtime_error);
    auto endless = []() -> asio::awaitable<void> {
      asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
      co_await timer.async_wait(asio::use_awaitable);
    };
    auto spawned = spawn_monitor(
        [](auto f) -> Async<void> {
          co_await asio::co_spawn(io::this_context(), f(), use_process);
        },
        endless);
    co_await otp::sleep(1ms);
    exit(spawned.first, ExitReason::kill());
    CHECK((co_await end_of(spawned.second)).to_string() == "killed");
  });
}

TEST_CASE("a kill ends waiting processes, and the System with others", "[io]") {
  System system(two_cores());
  system.run([]() -> Async<void> {
    for (int i = 0; i < 100; ++i) {
      auto spawned = spawn_monitor(wait_on_timer);
      if (i % 2) co_await otp::sleep(50us);
      exit(spawned.first, ExitReason::kill());
      CHECK((co_await end_of(spawned.second)).to_string() == "killed");
    }
  });
  for (int i = 0; i < 50; ++i) system.spawn(wait_on_timer);  // ~System ends them
}

TEST_CASE("an exit while the answer is on its way is no harm", "[io]") {
  System system(two_cores());
  system.run([]() -> Async<void> {
    for (int i = 0; i < 500; ++i) {
      auto spawned = spawn_monitor(
          [](int us) -> Async<void> {
            asio::steady_timer timer(io::this_context(), std::chrono::microseconds(us));
            co_await timer.async_wait(use_process);
            co_await timer.async_wait(use_process);
          },
          i % 100);
      co_await otp::sleep(std::chrono::microseconds(i % 70));
      exit(spawned.first, ExitReason::kill());
      co_await end_of(spawned.second);
    }
  });
}

namespace {

/// What the killed process is in the middle of.
enum class State {
  before_the_first_byte,
  in_the_header,
  in_the_body,
  in_a_chunk,
  writing_header_and_body,
  writing_a_chunked_body,
};

Async<void> read_a_request(tcp::socket socket) {
  boost::beast::flat_buffer buffer;
  http::request<http::string_body> request;
  co_await http::async_read(socket, buffer, request, use_process);
}

Async<void> write_an_answer(tcp::socket socket, bool chunked) {
  http::response<http::string_body> response(http::status::ok, 11);
  response.body().assign(8 << 20, 'x');  // more than the kernel takes without a reader
  response.chunked(chunked);
  if (!chunked) response.prepare_payload();
  co_await http::async_write(socket, response, use_process);
}

const char* begin_of(State state) {
  switch (state) {
    case State::in_the_header: return "GET / HTTP/1.1\r\nHost: a\r\nX-Long: ";
    case State::in_the_body: return "POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\nsome";
    case State::in_a_chunk: return "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nso";
    default: return "";
  }
}

/// Kills a process that reads or writes a message, after `delay`, while the other side acts.
Async<void> kill_in(System& system, State state, int round) {
  Ends ends = connected_ends(io::context_of(system, round % 2u), io::context_of(system, 0));
  const bool writes =
      state == State::writing_header_and_body || state == State::writing_a_chunked_body;
  auto victim = writes ? spawn_monitor(write_an_answer, std::move(ends.near),
                                       state == State::writing_a_chunked_body)
                       : spawn_monitor(read_a_request, std::move(ends.near));
  std::string begin = begin_of(state);
  std::array<char, 65536> drained;
  if (!begin.empty()) co_await asio::async_write(ends.far, asio::buffer(begin), use_process);
  if (writes && round % 3 == 0) {
    co_await ends.far.async_read_some(asio::buffer(drained), use_process_result);
  }
  if (round % 4 != 0) co_await otp::sleep(std::chrono::microseconds((round * 7) % 120));
  if (!writes && round % 5 == 0) {  // more of the message arrives together with the kill
    co_await asio::async_write(ends.far, asio::buffer("abc", 3), use_process);
  }
  exit(victim.first, ExitReason::kill());
  CHECK((co_await end_of(victim.second)).to_string() == "killed");
  // Its socket is closed: the other side sees the end, or a reset.
  while (co_await ends.far.async_read_some(asio::buffer(drained), use_process_result)) {}
}

}  // namespace

TEST_CASE("a process killed in any state of a Beast read or write leaves nothing behind",
          "[io][kill]") {
  System system(two_cores());
  State state =
      GENERATE(State::before_the_first_byte, State::in_the_header, State::in_the_body,
               State::in_a_chunk, State::writing_header_and_body, State::writing_a_chunked_body);
  system.run(
      [](System* s, State in) -> Async<void> {
        for (int round = 0; round < 1000; ++round) co_await kill_in(*s, in, round);
      },
      &system, state);
}
