#include "otp/observe/fd_log_handler.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <thread>

#include "otp/observe/logger.h"

using namespace otp::observe;
using namespace std::chrono_literals;
using otp::LogLevel;
using std::chrono::steady_clock;

namespace {

struct Fds {
  int read = -1;
  int write = -1;
  Fds() = default;
  Fds(int read, int write) : read(read), write(write) {}
  Fds(Fds&& other) noexcept { *this = std::move(other); }
  Fds& operator=(Fds&& other) noexcept {
    std::swap(read, other.read);
    std::swap(write, other.write);
    return *this;
  }
  void close_read() { ::close(std::exchange(read, -1)); }
  void close_write() { ::close(std::exchange(write, -1)); }
  ~Fds() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

Fds make_pipe() {
  int fds[2];
  REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
  return {fds[0], fds[1]};
}

std::unique_ptr<LogHandler> start(const FdLogOptions& options) {
  auto handler = start_fd_log_handler(options);
  if (!handler.ok()) FAIL(handler.error().to_string());
  return std::move(handler).value();
}

std::unique_ptr<Logger> make_logger(const FdLogOptions& options) {
  std::vector<std::unique_ptr<LogHandler>> handlers;
  handlers.push_back(start(options));
  return std::make_unique<Logger>(LogLevel::debug, std::move(handlers));
}

void log(Logger& logger, std::string message, LogLevel level = LogLevel::info) {
  otp::log(logger, level, "test", [&](otp::LogRecord& record) { record.message = message; });
}

// All lines until the writers are gone. For any thread: no assertions here.
std::vector<std::string> read_lines(int fd) {
  std::string all;
  char buffer[65536];
  ssize_t count = 0;
  while ((count = read(fd, buffer, sizeof buffer)) > 0) all.append(buffer, count);
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = 0; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(all.substr(begin, end - begin));
  }
  if (begin != all.size()) lines.push_back("(half a line) " + all.substr(begin));
  return lines;
}

uint64_t dropped_in(const std::vector<std::string>& lines) {
  uint64_t sum = 0;
  for (const std::string& line : lines) {
    const size_t at = line.find(" dropped=");
    if (at != std::string::npos) sum += std::strtoull(line.c_str() + at + 9, nullptr, 10);
  }
  return sum;
}

}  // namespace

TEST_CASE("records are written in order and flushed before a stop", "[logger]") {
  Fds fds = make_pipe();
  auto logger = make_logger({.fd = fds.write});
  fds.close_write();
  for (int index = 0; index < 100; ++index) log(*logger, "n" + std::to_string(index));
  REQUIRE(logger->flush(10s));
  CHECK(logger->stats().written == 100);
  log(*logger, "last");
  REQUIRE(logger->stop(10s));
  log(*logger, "after the stop");
  const auto lines = read_lines(fds.read);
  REQUIRE(lines.size() == 101);
  for (int index = 0; index < 100; ++index) {
    CHECK_THAT(lines[index], Catch::EndsWith(" test: n" + std::to_string(index)));
  }
  CHECK_THAT(lines[100], Catch::EndsWith("last"));
  CHECK(logger->stats().dropped_failed == 1);
}

TEST_CASE("R-026 a reader that stops reading never holds up those who log", "[logger]") {
  constexpr int kRecords = 50'000;
  Fds fds = make_pipe();
  auto logger = make_logger({.fd = fds.write, .queue_bytes_max = 1 << 20, .burst_records_max = 0});
  fds.close_write();
  for (int index = 0; index < kRecords; ++index) log(*logger, "record " + std::to_string(index));
  log(*logger, "an error has room of its own", LogLevel::error);
  CHECK_FALSE(logger->flush(1ms));
  CHECK(logger->stats().dropped_full > kRecords / 2);

  // The reader goes on: all that was kept arrives, then one line says how many are missing.
  std::vector<std::string> lines;
  std::thread reader([&] { lines = read_lines(fds.read); });
  CHECK(logger->flush(10s));
  CHECK(logger->stop(10s));
  reader.join();
  const LogStats stats = logger->stats();
  CHECK(stats.written + stats.dropped_full == kRecords + 1);
  CHECK(lines.size() == stats.written + 1);
  CHECK(dropped_in(lines) == stats.dropped_full);
  CHECK_THAT(lines.back(), Catch::Contains("as the reader did not keep up"));
  CHECK_THAT(lines[lines.size() - 2], Catch::EndsWith("an error has room of its own"));
}

TEST_CASE("R-026 a stop is in time although nobody reads", "[logger]") {
  enum class Kind { pipe, socket, terminal };
  const auto kind = GENERATE(Kind::pipe, Kind::socket, Kind::terminal);
  Fds fds;
  if (kind == Kind::pipe) {
    fds = make_pipe();
  } else if (kind == Kind::socket) {
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fds.read = pair[0];
    fds.write = pair[1];
  } else {
    fds.read = posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(fds.read >= 0);
    REQUIRE((grantpt(fds.read) == 0 && unlockpt(fds.read) == 0));
    fds.write = open(ptsname(fds.read), O_RDWR | O_NOCTTY);
  }
  REQUIRE(fds.write >= 0);
  const int flags = fcntl(fds.write, F_GETFL);
  auto logger = make_logger({.fd = fds.write, .burst_records_max = 0});
  for (int index = 0; index < 5'000; ++index) log(*logger, std::string(100, 'x'));
  CHECK(fcntl(fds.write, F_GETFL) == flags);
  const auto begin = steady_clock::now();
  CHECK_FALSE(logger->stop(50ms));
  CHECK(steady_clock::now() - begin < 5s);
  logger.reset();  // nor does the destructor wait
  CHECK(steady_clock::now() - begin < 5s);
}

TEST_CASE("R-025 a reader that goes away costs records, not the process", "[logger]") {
  Fds fds = make_pipe();
  auto logger = make_logger({.fd = fds.write, .burst_records_max = 0, .retry_after = 0ms});
  fds.close_read();
  for (int index = 0; index < 10'000; ++index) log(*logger, "nobody hears this");
  REQUIRE(logger->flush(10s));
  CHECK(logger->stats().dropped_failed + logger->stats().dropped_full == 10'000);
  CHECK(logger->stop(10s));
}

TEST_CASE("R-025 when a reader comes back a line says how many were lost", "[logger]") {
  char folder[] = "/tmp/otp_log_XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/fifo";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  Fds fds;
  fds.read = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  fds.write = open(path.c_str(), O_WRONLY);
  auto logger = make_logger({.fd = fds.write, .burst_records_max = 0, .retry_after = 0ms});
  fds.close_write();
  fds.close_read();
  log(*logger, "lost");
  log(*logger, "lost");
  REQUIRE(logger->flush(10s));
  CHECK(logger->stats().dropped_failed == 2);
  fds.read = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  log(*logger, "heard again");
  REQUIRE(logger->stop(10s));
  const auto lines = read_lines(fds.read);
  REQUIRE(lines.size() == 2);
  const std::string both = lines[0] + lines[1];  // the report may come first
  CHECK_THAT(both, Catch::Contains("test: heard again"));
  CHECK_THAT(both, Catch::Contains("2 records were not written: 2 as writing failed"));
  CHECK(dropped_in(lines) == 2);
  unlink(path.c_str());
  rmdir(folder);
}

TEST_CASE("a burst is cut at its limit and summed up in one line", "[logger]") {
  Fds fds = make_pipe();
  auto logger = make_logger({.fd = fds.write, .burst_records_max = 10, .burst_window = 1h});
  fds.close_write();
  for (int index = 0; index < 100; ++index) log(*logger, "burst");
  CHECK(logger->stop(10s));
  const auto lines = read_lines(fds.read);
  REQUIRE(lines.size() == 11);
  CHECK_THAT(
      lines.back(),
      Catch::Contains("90 records were not written: 90 above the limit of 10 in 3600000 ms"));
}

TEST_CASE("many threads log at once, each in its own order", "[logger][thread]") {
  constexpr int kThreads = 4;
  constexpr int kEach = 2'000;
  Fds fds = make_pipe();
  auto logger = make_logger({.fd = fds.write, .queue_bytes_max = 64 << 20, .burst_records_max = 0});
  fds.close_write();
  std::vector<std::string> lines;
  std::thread reader([&] { lines = read_lines(fds.read); });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int index = 0; index < kEach; ++index) {
        log(*logger, std::to_string(thread) + " " + std::to_string(index));
        if (index % 500 == 0) logger->flush(10s);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(logger->stop(10s));
  reader.join();
  REQUIRE(lines.size() == kThreads * kEach);
  int next[kThreads] = {};
  int out_of_order = 0;
  for (const std::string& line : lines) {
    const std::string message = line.substr(line.find("test: ") + 6);
    const int thread = message[0] - '0';
    if (message != std::to_string(thread) + " " + std::to_string(next[thread])) ++out_of_order;
    ++next[thread];
  }
  CHECK(out_of_order == 0);
}

TEST_CASE("a descriptor that is not open is an error that says so", "[logger]") {
  auto handler = start_fd_log_handler({.fd = 987'654});
  REQUIRE_FALSE(handler.ok());
  CHECK_THAT(handler.error().to_string(), Catch::Contains("EBADF"));
}
