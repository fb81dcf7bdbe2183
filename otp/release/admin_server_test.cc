#include "otp/release/admin_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "otp/release/admin_client.h"
#include "otp/release/admin_socket.h"
#include "otp/release/testing/temporary_folder.h"

namespace otp::release {
namespace {

using namespace std::chrono_literals;
using testing::TemporaryFolder;
using testing::write_file;

constexpr auto kLong = 20s;  // a test that waits longer has failed

/// A client that sends what it likes.
class RawClient {
 public:
  explicit RawClient(const std::string& path) {
    Connection connection = connect_to(path, Clock::now() + kLong);
    INFO(connection.error);
    REQUIRE(connection.error_number == 0);
    fd_ = std::move(connection.fd);
    fcntl(fd_.get(), F_SETFL, 0);
    timeval limit{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void send(const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      ssize_t count = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }
  void end_of_input() { shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }
  /// The next line, or "<end>".
  std::string line() {
    char byte = 0;
    std::string text;
    while (recv(fd_.get(), &byte, 1, 0) == 1) {
      if (byte == '\n') return text;
      text += byte;
    }
    return text.empty() ? "<end>" : text + "<end>";
  }

 private:
  UniqueFd fd_;
};

struct Fixture {
  explicit Fixture(AdminLimits limits = {}) : server(limits) {
    server.on("ping", [](const AdminRequest&) { return AdminResponse::success("pong"); });
    server.on("echo",
              [](const AdminRequest& request) { return AdminResponse::success(request.args); });
    std::string error = server.open(path);
    INFO(error);
    REQUIRE(error.empty());
    REQUIRE(server.start().empty());
  }

  TemporaryFolder folder;
  std::string path = folder / "a.sock";
  AdminServer server;
};

const std::string kPing = "{\"command\":\"ping\"}\n";
const std::string kPong = "{\"ok\":true,\"result\":\"pong\"}";

TEST_CASE("a client's requests are answered in order", "[release][admin]") {
  Fixture fixture;
  RawClient client(fixture.path);
  client.send(kPing + "\n  \r\n" + "{\"id\":[7],\"command\":\"echo\",\"args\":{\"a\":1}}\n" +
              kPing);
  CHECK(client.line() == kPong);
  CHECK(client.line() == "{\"id\":[7],\"ok\":true,\"result\":{\"a\":1}}");
  CHECK(client.line() == kPong);
}

TEST_CASE("wrong requests are answered with what was expected", "[release][admin]") {
  Fixture fixture;
  RawClient client(fixture.path);
  auto answer = [&](const std::string& line) {
    client.send(line + "\n");
    return client.line();
  };
  CHECK(answer("{").find("{\"ok\":false,\"error\":\"expected one JSON object a line") == 0);
  CHECK(answer("[1]").find("expected one JSON object") != std::string::npos);
  CHECK(answer("{}").find("expected \\\"command\\\": string, got none") != std::string::npos);
  CHECK(answer("{\"command\":1}").find("unexpected 'command'") != std::string::npos);
  CHECK(answer("{\"command\":\"ping\",\"argz\":{}}").find("unexpected 'argz'") !=
        std::string::npos);
  CHECK(answer("{\"command\":\"nope\"}") == "{\"ok\":false,\"error\":\"unknown command 'nope'\"}");
  CHECK(answer("{\"command\":\"\xff\"}").find("\"ok\":false") != std::string::npos);
  CHECK(answer(std::string(1000, '[')).find("\"ok\":false") != std::string::npos);
  CHECK(answer("{\"command\":\"ping\"}") == kPong);
}

TEST_CASE("a callback that throws or never answers is told to the client", "[release][admin]") {
  Fixture fixture;
  fixture.server.on("throws", [](const AdminRequest&) -> AdminResponse {
    throw std::runtime_error("no such thing");
  });
  fixture.server.on_later("throws_later", [](AdminRequest, AdminReply) {
    throw std::runtime_error("no such thing either");
  });
  fixture.server.on_later("drops", [](AdminRequest, AdminReply) {});
  RawClient client(fixture.path);
  client.send(
      "{\"command\":\"throws\"}\n{\"command\":\"throws_later\"}\n{\"command\":\"drops\"}\n");
  CHECK(client.line() == "{\"ok\":false,\"error\":\"no such thing\"}");
  CHECK(client.line() == "{\"ok\":false,\"error\":\"no such thing either\"}");
  CHECK(client.line() == "{\"ok\":false,\"error\":\"the node gave no answer\"}");
}

TEST_CASE("an answer may come later and from another thread", "[release][admin]") {
  Fixture fixture;
  std::thread other;
  fixture.server.on_later("later", [&](AdminRequest, AdminReply reply) {
    other = std::thread(
        [reply = std::move(reply)]() mutable { reply.answer(AdminResponse::success("late")); });
  });
  RawClient client(fixture.path);
  client.send("{\"command\":\"later\"}\n" + kPing);
  CHECK(client.line() == "{\"ok\":true,\"result\":\"late\"}");
  CHECK(client.line() == kPong);
  other.join();
}

TEST_CASE("a command that the node does not answer ends in time and holds up nobody",
          "[release][admin]") {
  Fixture fixture({.answer_within = 50ms});
  std::optional<AdminReply> kept;
  fixture.server.on_later("stuck",
                          [&](AdminRequest, AdminReply reply) { kept.emplace(std::move(reply)); });
  RawClient client(fixture.path);
  client.send("{\"command\":\"stuck\"}\n");
  RawClient other(fixture.path);
  other.send(kPing);
  CHECK(other.line() == kPong);
  CHECK(client.line() == "{\"ok\":false,\"error\":\"the node is busy: no answer within 50 ms\"}");
  // The late answer belongs to nobody: the next request gets its own.
  kept->answer(AdminResponse::success("too late"));
  client.send(kPing);
  CHECK(client.line() == kPong);
}

TEST_CASE("a line that is too long ends its connection", "[release][admin]") {
  Fixture fixture({.line_bytes_max = 100});
  RawClient client(fixture.path);
  client.send(std::string(100'000, 'x'));
  CHECK(client.line() == "{\"ok\":false,\"error\":\"the request is longer than 100 bytes\"}");
  CHECK(client.line() == "<end>");
  RawClient other(fixture.path);
  other.send(kPing);
  CHECK(other.line() == kPong);
}

TEST_CASE("an answer that is too long is replaced by an error", "[release][admin]") {
  Fixture fixture({.answer_bytes_max = 1000});
  fixture.server.on(
      "long", [](const AdminRequest&) { return AdminResponse::text(std::string(2000, 'x')); });
  RawClient client(fixture.path);
  client.send("{\"command\":\"long\"}\n" + kPing);
  CHECK(client.line().find("{\"ok\":false,\"error\":\"the answer has 20") == 0);
  CHECK(client.line() == kPong);
}

TEST_CASE("one client too many is told so", "[release][admin]") {
  Fixture fixture({.clients_max = 2});
  RawClient first(fixture.path);
  RawClient second(fixture.path);
  first.send(kPing);
  second.send(kPing);
  CHECK(first.line() == kPong);
  CHECK(second.line() == kPong);
  RawClient third(fixture.path);
  CHECK(third.line() == "{\"ok\":false,\"error\":\"too many admin clients: at most 2\"}");
  CHECK(third.line() == "<end>");
  first.close();
  second.send(kPing);
  CHECK(second.line() == kPong);
  RawClient fourth(fixture.path);
  fourth.send(kPing);
  CHECK(fourth.line() == kPong);
}

TEST_CASE("R-030 a client that is silent, drips or does not read is closed", "[release][admin]") {
  Fixture fixture({.idle_max = 100ms});
  fixture.server.on(
      "long", [](const AdminRequest&) { return AdminResponse::text(std::string(1u << 20, 'x')); });
  RawClient unreading(fixture.path);
  unreading.send("{\"command\":\"long\"}\n");
  RawClient silent(fixture.path);
  CHECK(silent.line() == "<end>");
  RawClient dripping(fixture.path);
  std::atomic<bool> ended = false;
  std::thread drip([&] {
    while (!ended) {
      dripping.send("x");
      poll(nullptr, 0, 5);
    }
  });
  CHECK(dripping.line() == "<end>");
  ended = true;
  drip.join();
  std::string rest = unreading.line();
  CHECK(rest.size() < (1u << 20));
}

TEST_CASE("a request whose sender closes its half, without a line end, is answered",
          "[release][admin]") {
  Fixture fixture;
  RawClient client(fixture.path);
  client.send("{\"command\":\"ping\"}");
  client.end_of_input();
  CHECK(client.line() == kPong);
  CHECK(client.line() == "<end>");
}

TEST_CASE("R-025 a client that goes in the middle of an answer harms nobody", "[release][admin]") {
  Fixture fixture;
  fixture.server.on(
      "long", [](const AdminRequest&) { return AdminResponse::text(std::string(1u << 20, 'x')); });
  for (int i = 0; i < 20; ++i) {
    RawClient client(fixture.path);
    client.send("{\"command\":\"long\"}\n");
  }
  RawClient other(fixture.path);
  other.send(kPing);
  CHECK(other.line() == kPong);
}

TEST_CASE("R-031 an operator is served when descriptors have run out", "[release][admin]") {
  Fixture fixture;
  // Warm up, so that nothing is opened for the first time below.
  RawClient(fixture.path).send(kPing);
  int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  std::vector<UniqueFd> hoard;
  while (true) {
    UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) break;
    hoard.push_back(std::move(fd));
  }
  hoard.pop_back();  // for this client's own socket
  ::close(socket_fd);
  hoard.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  RawClient client(fixture.path);
  client.send(kPing);
  CHECK(client.line() == kPong);
  hoard.clear();
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("stop flushes what was answered, closes the clients and removes the socket",
          "[release][admin]") {
  Fixture fixture;
  std::promise<AdminReply> promised;
  fixture.server.on_later(
      "kept", [&](AdminRequest, AdminReply reply) { promised.set_value(std::move(reply)); });
  RawClient client(fixture.path);
  client.send("{\"command\":\"kept\"}\n");
  AdminReply reply = promised.get_future().get();
  reply.answer(AdminResponse::success("last words"));
  fixture.server.stop();
  fixture.server.stop();
  CHECK(client.line() == "{\"ok\":true,\"result\":\"last words\"}");
  CHECK(client.line() == "<end>");
  CHECK_FALSE(std::filesystem::exists(fixture.path));
}

TEST_CASE("a reply may outlive its server", "[release][admin]") {
  std::optional<AdminReply> kept;
  {
    Fixture fixture;
    std::promise<void> taken;
    fixture.server.on_later("kept", [&](AdminRequest, AdminReply reply) {
      kept.emplace(std::move(reply));
      taken.set_value();
    });
    RawClient client(fixture.path);
    client.send("{\"command\":\"kept\"}\n");
    taken.get_future().wait();
  }
  kept->answer(AdminResponse::success("to nobody"));
}

TEST_CASE("the socket is its owner's alone, whatever the umask", "[release][admin]") {
  mode_t mask = GENERATE(0, 022, 0777);
  mode_t before = umask(mask);
  Fixture fixture;
  umask(before);
  struct stat info{};
  REQUIRE(stat(fixture.path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("a socket that a crash left is replaced", "[release][admin]") {
  TemporaryFolder folder;
  std::string path = folder / "a.sock";
  REQUIRE(listen_at(path).ok());  // closed at once, the name stays
  REQUIRE(std::filesystem::exists(path));
  AdminServer server;
  CHECK(server.open(path) == "");
}

TEST_CASE("what is not a stale socket is not removed", "[release][admin]") {
  TemporaryFolder folder;
  std::string path = folder / "a.sock";
  AdminServer server;
  SECTION("a file") {
    write_file(path, "precious");
    CHECK(server.open(path).find(path) != std::string::npos);
    CHECK(testing::read_text(path) == "precious");
  }
  SECTION("a folder") {
    std::filesystem::create_directory(path);
    CHECK(server.open(path).find(path) != std::string::npos);
  }
  SECTION("a live socket, though the lock is ours") {
    Outcome<UniqueFd> other = listen_at(path);
    REQUIRE(other.ok());
    std::string error = server.open(path);
    CHECK(error.find("another node answers at " + path) == 0);
    CHECK(error.find("pid " + std::to_string(getpid())) != std::string::npos);
  }
}

TEST_CASE("R-020 socket paths of any length lead to their own node", "[release][admin]") {
  TemporaryFolder folder;
  size_t length = GENERATE(100, 107, 108, 200, 2000);
  std::string where = folder.path();
  while (where.size() + 3 < length) {
    // Parts as long as names may be; the last leaves room for "/s" and one more byte.
    size_t room = length - where.size() - 3;
    where += "/" + std::string(std::clamp<size_t>(room, 1, 200), 'd');
  }
  where.resize(length - 2);
  if (where.back() == '/') where.back() = 'd';
  std::filesystem::create_directories(where);
  std::filesystem::create_directories(where + "e");
  std::vector<std::string> paths = {where + "/s", where + "e/s"};
  REQUIRE(paths[0].size() == length);
  AdminServer servers[2];
  for (int i = 0; i < 2; ++i) {
    servers[i].on("which", [i](const AdminRequest&) { return AdminResponse::success(i); });
    REQUIRE(servers[i].open(paths[static_cast<size_t>(i)]) == "");
    REQUIRE(servers[i].start() == "");
  }
  for (int i = 0; i < 2; ++i) {
    AdminClient client(paths[static_cast<size_t>(i)], kLong);
    CHECK(client.ask({.command = "which", .args = {}}).result == i);
    CHECK(client.node_pid() == getpid());
  }
  servers[0].stop();
  CHECK(AdminClient(paths[0], kLong).reach() == AdminClient::Reach::nobody);
  CHECK(AdminClient(paths[1], kLong).reach() == AdminClient::Reach::connected);
}

TEST_CASE("a client tells nobody from somebody it cannot reach", "[release][admin]") {
  TemporaryFolder folder;
  CHECK(AdminClient(folder / "none", kLong).reach() == AdminClient::Reach::nobody);
  REQUIRE(listen_at(folder / "stale").ok());
  CHECK(AdminClient(folder / "stale", kLong).reach() == AdminClient::Reach::nobody);
  AdminClient odd(folder / std::string(300, 'x'), kLong);
  CHECK(odd.reach() == AdminClient::Reach::failed);
  CHECK(odd.error().find("File name too long") == std::string::npos);
  CHECK(odd.error().find("bytes") != std::string::npos);
}

}  // namespace
}  // namespace otp::release
