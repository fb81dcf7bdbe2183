#include "otp/io/http_server.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <string>
#include <vector>

#include "otp/io/asio_poller.h"
#include "otp/io/simulated_network.h"
#include "otp/io/testing/http_client.h"
#include "otp/runtime/runtime.h"
#include "otp/runtime/system.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;
using io::HttpRequest;
using io::HttpResponse;
using io::HttpServer;
using io::testing::HttpClient;

namespace {

Async<HttpResponse> answer(HttpRequest request) {
  if (request.target == "/throw") throw std::runtime_error("as asked");
  if (request.target == "/slow") co_await otp::sleep(2s);
  if (request.target == "/split") co_return HttpResponse{.headers = {{"X", "a\r\nY: b"}}};
  if (request.target == "/none") co_return HttpResponse{.status = 204};
  if (request.target == "/large") co_return HttpResponse{.body = std::string(16 << 20, 'x')};
  co_return HttpResponse{.body = request.method + " " + request.target + " " + request.body};
}

std::optional<HttpResponse> check(const HttpRequest& head) {
  if (head.target != "/forbidden") return std::nullopt;
  return HttpResponse{.status = 401, .body = "no"};
}

HttpServer::Args args() {
  HttpServer::Args args{.service = {.handle = answer, .check_head = check}};
  args.options.body_bytes_max = 1000;
  args.options.header_bytes_max = 2000;
  return args;
}

Async<Server<HttpServer>> start(HttpServer::Args with = args()) {
  auto started = co_await start_link<HttpServer>(std::move(with));
  co_return std::move(started).or_exit();
}

Async<HttpClient> client_of(Server<HttpServer> server) {
  const io::Address address = co_await call(server, io::HttpAddress{});
  co_return co_await HttpClient::connect(address);
}

/// Runs `test` in the Simulator for some seeds and then on threads with real sockets.
template <class F>
void everywhere(F test) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed, io::simulated_options());
    simulator.run(test);
  }
  SystemOptions options;
  options.cores = 2;
  System system(io::system_options(options));
  system.run(test);
}
/// Where time passes: in the Simulator only.
template <class F>
void simulated(F test) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed, io::simulated_options());
    simulator.run(test);
  }
}

Duration now() { return Duration(otp::internal::env().system->now()); }

}  // namespace

TEST_CASE("requests on one connection are answered in order", "[io][http]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start();
    HttpClient client = co_await client_of(server);
    HttpResponse response = co_await client.request("GET", "/a?b=c");
    CHECK(response.status == 200);
    CHECK(response.body == "GET /a?b=c ");
    CHECK(response.header("date")->size() == 29);
    response = co_await client.request("POST", "/b", "body");
    CHECK(response.body == "POST /b body");
    CHECK_FALSE(response.close);
    response = co_await client.request("GET", "/c", "", {{"Connection", "close"}});
    CHECK(response.close);
    CHECK(co_await client.read_to_end() == "");
    co_await stop(server);
  });
}

TEST_CASE("a handler that throws gives 500 and the connection goes on", "[io][http]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start();
    HttpClient client = co_await client_of(server);
    HttpResponse response = co_await client.request("GET", "/throw");
    CHECK(response.status == 500);
    response = co_await client.request("GET", "/split");
    CHECK(response.status == 500);
    response = co_await client.request("GET", "/none");
    CHECK(response.status == 204);
    response = co_await client.request("GET", "/after");
    CHECK(response.body == "GET /after ");
    co_await stop(server);
  });
}

TEST_CASE("R-028 Expect: 100-continue is answered before the body is there", "[io][http]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start();
    HttpClient client = co_await client_of(server);
    const std::string head = "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n";
    co_await client.send(head + "Content-Length: 4\r\n\r\n");
    HttpResponse response = co_await client.receive();
    CHECK(response.status == 100);
    co_await client.send("body");
    response = co_await client.receive();
    CHECK(response.body == "POST /x body");
    co_await client.send(head + "Transfer-Encoding: chunked\r\n\r\n");
    response = co_await client.receive();
    CHECK(response.status == 100);
    co_await client.send("2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n");
    response = co_await client.receive();
    CHECK(response.body == "POST /x body");
    co_await client.send("POST /x HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nb");
    response = co_await client.receive();
    CHECK(response.body == "POST /x b");  // and no 100 before it

    struct Refused {
      std::string head;
      int status;
    };
    const std::vector<Refused> refused = {
        {head + "Content-Length: 1001\r\n\r\n", 413},
        {"POST /forbidden HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
         401},
        {"POST /x HTTP/1.1\r\nHost: a\r\nExpect: 200-maybe\r\nContent-Length: 1\r\n\r\n", 417}};
    for (const Refused& each : refused) {
      INFO(each.head);
      HttpClient other = co_await client_of(server);
      co_await other.send(each.head);
      response = co_await other.receive();
      CHECK(response.status == each.status);
      CHECK(response.close);
      other.socket().shutdown_send();
      CHECK(co_await other.read_to_end() == "");
    }
    co_await stop(server);
  });
}

TEST_CASE("R-029 a client that has closed its sending half gets its answers", "[io][http]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start();
    const std::string get = "GET /g HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::string post = "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
    struct Case {
      std::string sent;
      int answers;
    };
    const std::vector<Case> cases = {{get, 1},          {post + "body", 1}, {post + "bo", 0},
                                     {"GET /g HTT", 0}, {get + get, 2},     {"", 0}};
    for (const Case& each : cases) {
      INFO(each.sent);
      HttpClient client = co_await client_of(server);
      co_await client.send(each.sent);
      client.socket().shutdown_send();
      for (int i = 0; i < each.answers; ++i) {
        HttpResponse response = co_await client.receive();
        CHECK(response.status == 200);
      }
      CHECK(co_await client.read_to_end() == "");
    }
    co_await stop(server);
  });
  simulated([]() -> Async<void> {
    auto server = co_await start();
    HttpClient client = co_await client_of(server);
    co_await client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await otp::sleep(1s);
    client.socket().shutdown_send();
    HttpResponse response = co_await client.receive();
    CHECK(response.body == "GET /slow ");
    co_await stop(server);
  });
}

TEST_CASE("R-030 dripping does not extend a deadline", "[io][http]") {
  simulated([]() -> Async<void> {
    auto server = co_await start();
    HttpClient client = co_await client_of(server);
    Duration begin = now();
    for (int i = 0; i < 30 && now() - begin < 10s; ++i) {
      co_await client.send("G");
      co_await otp::sleep(2s);
    }
    HttpResponse response = co_await client.receive();
    CHECK(response.status == 408);
    CHECK(now() - begin < 11s);

    HttpClient body = co_await client_of(server);
    co_await body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n");
    begin = now();
    for (int i = 0; i < 100 && now() - begin < 30s; ++i) {
      co_await body.send("x");
      co_await otp::sleep(1s);
    }
    response = co_await body.receive();
    CHECK(response.status == 408);
    CHECK(now() - begin < 31s);

    HttpClient idle = co_await client_of(server);
    begin = now();
    CHECK(co_await idle.read_to_end(1h) == "");
    CHECK(now() - begin >= 60s);
    CHECK(now() - begin < 61s);

    HttpClient deaf = co_await client_of(server);
    co_await deaf.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await otp::sleep(31s);
    CHECK(co_await call(server, io::HttpConnections{}) == 0);
    co_await stop(server);
  });
}

TEST_CASE("R-032 an empty line between requests is nothing, however it comes", "[io][http]") {
  simulated([]() -> Async<void> {
    auto server = co_await start();
    HttpClient client = co_await client_of(server);
    const std::string get = "GET /g HTTP/1.1\r\nHost: a\r\n\r\n";
    for (const std::vector<std::string>& pieces : {std::vector<std::string>{"\r\n" + get},
                                                   {"\r", "\n" + get},
                                                   {"\r\n", "\r\n\r", "\n", get}}) {
      for (const std::string& piece : pieces) {
        co_await client.send(piece);
        co_await otp::sleep(1s);
      }
      CHECK((co_await client.receive()).body == "GET /g ");
    }
    const Duration begin = now();
    co_await client.send("\r\n");
    CHECK(co_await client.read_to_end(1h) == "");  // it was idle
    CHECK(now() - begin >= 59s);
    co_await stop(server);
  });
}

TEST_CASE("R-032 each request ends where it ends", "[io][http]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start();
    HttpClient client = co_await client_of(server);
    const std::string rest = " HTTP/1.1\r\nHost: a\r\n\r\n";
    co_await client.send("DELETE /d" + rest + "GET /g" + rest + "HEAD /h" + rest + "GET /i" + rest +
                         "GET /j HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345\r\nBREW /k" +
                         rest + "GET http://host/path" + rest);
    std::vector<std::string> bodies = {
        "DELETE /d ",           "GET /g ", "", "GET /i ", "GET /j 12345", "BREW /k ",
        "GET http://host/path "};
    for (size_t i = 0; i < bodies.size(); ++i) {
      HttpResponse response = co_await client.receive(i == 2);
      CHECK(response.status == 200);
      CHECK(response.body == bodies[i]);
    }
    for (int i = 0; i < 10; ++i) {
      co_await client.send("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n" +
                           std::to_string(i));
    }
    for (int i = 0; i < 10; ++i) {
      HttpResponse response = co_await client.receive();
      CHECK(response.body == "POST /p " + std::to_string(i));
    }
    struct Refused {
      std::string sent;
      int status;
    };
    const std::vector<Refused> refused = {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET / HTTP/1.0\r\n\r\n", 200},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(64 << 10, 'x') + "\r\n\r\n", 431},
        {"nonsense\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n", 413}};
    for (const Refused& each : refused) {
      INFO(each.sent.substr(0, 100));
      HttpClient other = co_await client_of(server);
      co_await other.send(each.sent);
      HttpResponse response = co_await other.receive();
      CHECK(response.status == each.status);
      CHECK(response.close);
      other.socket().shutdown_send();
      CHECK(co_await other.read_to_end() == "");
    }
    co_await stop(server);
  });
}

TEST_CASE("connections over the limit get 503 and are closed", "[io][http]") {
  everywhere([]() -> Async<void> {
    HttpServer::Args few = args();
    few.options.connections_max = 2;
    auto server = co_await start(few);
    HttpClient one = co_await client_of(server);
    HttpClient two = co_await client_of(server);
    co_await one.request("GET", "/");
    co_await two.request("GET", "/");
    HttpClient three = co_await client_of(server);
    HttpResponse response = co_await three.request("GET", "/");
    CHECK(response.status == 503);
    CHECK(response.close);
    one.socket().close();
    for (;;) {  // its place becomes free
      HttpClient again = co_await client_of(server);
      HttpResponse answered = co_await again.request("GET", "/");
      if (answered.status == 200) break;
    }
    co_await stop(server);
  });
}

TEST_CASE("stopping answers what has begun and takes nothing more", "[io][http]") {
  simulated([]() -> Async<void> {
    trap_exit(true);
    auto server = co_await start();
    const io::Address address = co_await call(server, io::HttpAddress{});
    HttpClient idle = co_await client_of(server);
    HttpClient half = co_await client_of(server);
    HttpClient busy = co_await client_of(server);
    HttpClient deaf = co_await client_of(server);
    co_await half.send("GET / HT");
    co_await busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await deaf.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await otp::sleep(100ms);
    const Duration begin = now();
    auto stopping = spawn_monitor(
        [](Server<HttpServer> s) -> Async<void> { co_await stop(s, ExitReason::shutdown()); },
        server);
    HttpResponse response = co_await busy.receive();
    CHECK(response.body == "GET /slow ");
    CHECK(response.close);
    CHECK(co_await idle.read_to_end() == "");
    CHECK(co_await half.read_to_end() == "");
    co_await receive<Down>();
    CHECK(now() - begin < 3500ms);
    CHECK_FALSE(is_alive(server.pid()));
    auto refused = co_await io::Socket::connect(address);
    CHECK(std::holds_alternative<io::SystemError>(refused));
    (void)stopping;
  });
}

TEST_CASE("stopping gives up answers that nobody reads after a second, whoever else ends",
          "[io][http]") {
  simulated([]() -> Async<void> {
    trap_exit(true);
    auto server = co_await start();
    HttpClient busy = co_await client_of(server);
    HttpClient deaf = co_await client_of(server);
    co_await busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await otp::sleep(1100ms);
    co_await deaf.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    co_await otp::sleep(1ms);
    const Duration begin = now();
    auto stopping = spawn_monitor(
        [](Server<HttpServer> s) -> Async<void> { co_await stop(s, ExitReason::shutdown()); },
        server);
    co_await busy.receive();
    busy.socket().close();
    CHECK(now() - begin > 800ms);
    co_await receive<Down>();
    CHECK(now() - begin < 1100ms);
    (void)stopping;
  });
}

TEST_CASE("R-036 a listener killed five times in a row comes back on its port", "[io][http]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    HttpServer::Args same = args();
    auto server = co_await start(same);
    const io::Address address = co_await call(server, io::HttpAddress{});
    for (int i = 0; i < 5; ++i) {
      std::vector<HttpClient> load;
      for (int k = 0; k < 5; ++k) load.push_back(co_await client_of(server));
      co_await load[0].request("GET", "/");
      co_await load[1].send("GET /sl");
      co_await load[2].send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
      exit(server.pid(), ExitReason::kill());
      co_await receive<ExitMessage>();
      server = co_await start(same);
      CHECK(co_await call(server, io::HttpAddress{}) == address);
      HttpClient client = co_await client_of(server);
      HttpResponse response = co_await client.request("GET", "/again");
      CHECK(response.status == 200);
    }
    co_await stop(server);
  });
}
