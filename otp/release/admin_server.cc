#include "otp/release/admin_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "otp/release/admin_socket.h"
#include "otp/release/posix.h"

namespace otp::release {
namespace {

constexpr std::chrono::milliseconds kAcceptPause{200};
constexpr std::chrono::milliseconds kLastFlush{500};

/// One request that waits for its answer: which client, and the how-manieth request of that client.
struct Waiting {
  uint64_t client = 0;
  uint64_t serial = 0;
};

struct Answer {
  Waiting waiting;
  AdminResponse response;
};

/// Where answers from other threads arrive. It outlives the server as long as a reply is about.
struct Outbox {
  std::mutex mutex;
  std::vector<Answer> answers;  // guarded by mutex
  bool stopping = false;        // guarded by mutex
  UniqueFd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void wake() {
    uint64_t one = 1;
    // It fails only when the counter is full, and then the reader is awake anyway.
    [[maybe_unused]] ssize_t written = ::write(event.get(), &one, sizeof one);
  }
};

struct Client {
  UniqueFd fd;
  std::string in;
  std::string out;
  std::optional<json::value> request_id;  // of the request that waits
  uint64_t serial = 0;                    // of that request
  bool waits_for_answer = false;
  bool end_of_input = false;
  bool close_when_flushed = false;
  // Absolute: set when a turn begins (request expected, answer expected, answer queued). Bytes that
  // drip in or out do not move it.
  Clock::time_point deadline;
};

}  // namespace

struct AdminReply::Ticket {
  std::shared_ptr<Outbox> outbox;
  Waiting waiting;
};

AdminReply::AdminReply(std::shared_ptr<Ticket> ticket) : ticket_(std::move(ticket)) {}
AdminReply::AdminReply(AdminReply&&) noexcept = default;

AdminReply& AdminReply::operator=(AdminReply&& other) noexcept {
  std::swap(ticket_, other.ticket_);
  return *this;
}

AdminReply::~AdminReply() {
  if (ticket_) answer(AdminResponse::failure("the node gave no answer"));
}

void AdminReply::answer(AdminResponse response) {
  std::shared_ptr<Ticket> ticket = std::move(ticket_);
  if (!ticket) return;
  {
    std::lock_guard lock(ticket->outbox->mutex);
    ticket->outbox->answers.push_back({ticket->waiting, std::move(response)});
  }
  ticket->outbox->wake();
}

// Threads: `commands` under its mutex; `path`, `identity` and `thread` by whoever opens, starts and
// stops; everything below "server thread" by that thread alone.
struct AdminServer::State {
  using Callback = std::function<void(AdminRequest, AdminReply)>;

  AdminLimits limits;
  std::shared_ptr<Outbox> outbox = std::make_shared<Outbox>();
  std::mutex commands_mutex;
  std::map<std::string, Callback> commands;
  std::string path;
  struct stat identity{};
  std::thread thread;

  // Server thread.
  UniqueFd listener;
  UniqueFd reserve;  // given up to serve one operator when descriptors have run out
  std::map<uint64_t, Client> clients;
  uint64_t next_client = 1;
  Clock::time_point accept_again{};
  bool crowded = false;  // full when accepting last

  void run();
  void accept_clients();
  void turn_away(UniqueFd fd);
  void read_from(uint64_t id, Client& client);
  void take_requests(uint64_t id, Client& client);
  void handle(uint64_t id, Client& client, const std::string& line);
  void dispatch(uint64_t id, Client& client, AdminRequest request);
  void take_answers();
  void queue_answer(Client& client, AdminResponse response);
  bool flush(Client& client);
  bool finished(const Client& client) const;
  void expire(Client& client);
  void last_flush();
  Clock::time_point next_deadline() const;
};

/// Tells a client that there is no room for it. Its fresh socket has room for one line.
void AdminServer::State::turn_away(UniqueFd fd) {
  std::string why = "too many admin clients: at most " + std::to_string(limits.clients_max);
  std::string line = json::serialize(json::object{{"ok", false}, {"error", why}}) + "\n";
  ::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void AdminServer::State::accept_clients() {
  while (clients.size() < limits.clients_max || crowded) {
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      if (std::exchange(crowded, false)) return turn_away(std::move(fd));
      Client& client = clients[next_client++];
      client.fd = std::move(fd);
      client.deadline = Clock::now() + limits.idle_max;
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    if ((errno == EMFILE || errno == ENFILE) && reserve.valid()) {
      reserve.reset();
      continue;
    }
    // The listener stays readable, so without a pause this loop would take a whole core.
    accept_again = Clock::now() + kAcceptPause;
    return;
  }
  // Some of those may have gone by now. Only who finds it full after their next turn is turned
  // away.
  crowded = true;
}

void AdminServer::State::read_from(uint64_t id, Client& client) {
  char chunk[16 * 1024];
  while (client.in.size() <= limits.line_bytes_max) {
    ssize_t count = ::recv(client.fd.get(), chunk, sizeof chunk, 0);
    if (count > 0) {
      client.in.append(chunk, static_cast<size_t>(count));
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && errno == EAGAIN) {
      break;
    } else {
      client.end_of_input = true;
      if (count < 0) client.fd.reset();
      break;
    }
  }
  take_requests(id, client);
}

void AdminServer::State::take_requests(uint64_t id, Client& client) {
  while (client.fd.valid() && !client.waits_for_answer && !client.close_when_flushed) {
    size_t end = client.in.find('\n');
    if (end == std::string::npos && client.end_of_input && !client.in.empty())
      end = client.in.size();
    if (std::min(end, client.in.size()) > limits.line_bytes_max) {
      client.close_when_flushed = true;
      queue_answer(client,
                   AdminResponse::failure("the request is longer than " +
                                          std::to_string(limits.line_bytes_max) + " bytes"));
      return;
    }
    if (end == std::string::npos) return;
    std::string line = client.in.substr(0, end);
    client.in.erase(0, end + 1);
    if (line.find_first_not_of(" \t\r") != std::string::npos) handle(id, client, line);
  }
}

void AdminServer::State::handle(uint64_t id, Client& client, const std::string& line) {
  boost::system::error_code error;
  json::value parsed = json::parse(line, error);
  json::object* object = error ? nullptr : parsed.if_object();
  if (object == nullptr) {
    return queue_answer(client,
                        AdminResponse::failure("expected one JSON object a line, got " +
                                               (error ? error.message() : "another value")));
  }
  AdminRequest request;
  client.request_id.reset();
  for (auto& [key, value] : *object) {
    if (key == "id") {
      client.request_id = value;
    } else if (key == "command" && value.is_string()) {
      request.command = std::string(value.as_string());
    } else if (key == "args" && value.is_object()) {
      request.args = value.as_object();
    } else {
      return queue_answer(client, AdminResponse::failure(
                                      "unexpected '" + std::string(key) +
                                      "': expected \"command\": string, \"args\": object, \"id\""));
    }
  }
  if (request.command.empty()) {
    return queue_answer(client, AdminResponse::failure("expected \"command\": string, got none"));
  }
  dispatch(id, client, std::move(request));
}

void AdminServer::State::dispatch(uint64_t id, Client& client, AdminRequest request) {
  Callback callback;
  {
    std::lock_guard lock(commands_mutex);
    auto found = commands.find(request.command);
    if (found != commands.end()) callback = found->second;
  }
  if (!callback) {
    return queue_answer(client,
                        AdminResponse::failure("unknown command '" + request.command + "'"));
  }
  client.waits_for_answer = true;
  client.deadline = Clock::now() + limits.answer_within;
  Waiting waiting{.client = id, .serial = ++client.serial};
  AdminReply reply(std::make_shared<AdminReply::Ticket>(outbox, waiting));
  try {
    callback(std::move(request), std::move(reply));
  } catch (const std::exception& fault) {
    // In front, as the reply that the callback dropped has already answered that there is none.
    Answer answer{.waiting = waiting, .response = AdminResponse::failure(fault.what())};
    std::lock_guard lock(outbox->mutex);
    outbox->answers.insert(outbox->answers.begin(), std::move(answer));
  }
  take_answers();  // most have answered by now
}

void AdminServer::State::take_answers() {
  std::vector<Answer> answers;
  {
    std::lock_guard lock(outbox->mutex);
    answers.swap(outbox->answers);
  }
  for (Answer& answer : answers) {
    auto found = clients.find(answer.waiting.client);
    if (found == clients.end()) continue;
    Client& client = found->second;
    if (!client.waits_for_answer || client.serial != answer.waiting.serial) continue;
    client.waits_for_answer = false;
    queue_answer(client, std::move(answer.response));
  }
}

void AdminServer::State::queue_answer(Client& client, AdminResponse response) {
  json::object answer;
  if (client.request_id) answer["id"] = *std::exchange(client.request_id, std::nullopt);
  answer["ok"] = response.ok;
  if (response.ok) {
    answer["result"] = std::move(response.result);
  } else {
    answer["error"] = std::move(response.error);
  }
  std::string line = json::serialize(answer);
  if (line.size() > limits.answer_bytes_max) {
    answer["ok"] = false;
    answer.erase("result");
    answer["error"] = "the answer has " + std::to_string(line.size()) + " bytes, more than " +
                      std::to_string(limits.answer_bytes_max);
    line = json::serialize(answer);
  }
  client.out += line + "\n";
  client.deadline = Clock::now() + limits.idle_max;
  flush(client);
}

/// Sends what the client takes now. False when the client is gone.
bool AdminServer::State::flush(Client& client) {
  size_t sent = 0;
  while (client.fd.valid() && sent < client.out.size()) {
    ssize_t count =
        ::send(client.fd.get(), client.out.data() + sent, client.out.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      client.fd.reset();
    }
  }
  client.out.erase(0, sent);
  if (client.out.empty() && sent > 0) client.deadline = Clock::now() + limits.idle_max;
  return client.fd.valid();
}

bool AdminServer::State::finished(const Client& client) const {
  if (!client.fd.valid()) return true;
  if (!client.out.empty() || client.waits_for_answer) return false;
  return client.close_when_flushed || (client.end_of_input && client.in.empty());
}

void AdminServer::State::expire(Client& client) {
  if (!client.waits_for_answer) return client.fd.reset();
  client.waits_for_answer = false;
  queue_answer(client,
               AdminResponse::failure("the node is busy: no answer within " +
                                      std::to_string(limits.answer_within.count()) + " ms"));
}

Clock::time_point AdminServer::State::next_deadline() const {
  auto next = Clock::now() + std::chrono::hours(1);
  if (accept_again > Clock::now()) next = std::min(next, accept_again);
  for (const auto& [id, client] : clients) next = std::min(next, client.deadline);
  return next;
}

void AdminServer::State::run() {
  std::vector<pollfd> polls;
  std::vector<uint64_t> polled;
  while (true) {
    bool may_accept = Clock::now() >= accept_again;
    polls.assign({{.fd = outbox->event.get(), .events = POLLIN, .revents = 0},
                  {.fd = may_accept ? listener.get() : -1, .events = POLLIN, .revents = 0}});
    polled.clear();
    for (auto& [id, client] : clients) {
      bool reads = !client.end_of_input && !client.waits_for_answer && !client.close_when_flushed &&
                   client.out.empty();
      int events = (reads ? POLLIN : 0) | (client.out.empty() ? 0 : POLLOUT);
      polls.push_back({.fd = client.fd.get(), .events = static_cast<short>(events), .revents = 0});
      polled.push_back(id);
    }
    ::poll(polls.data(), polls.size(), poll_timeout(next_deadline()));

    uint64_t count = 0;
    [[maybe_unused]] ssize_t drained = ::read(outbox->event.get(), &count, sizeof count);
    {
      std::lock_guard lock(outbox->mutex);
      if (outbox->stopping) break;
    }
    take_answers();
    for (size_t i = 0; i < polled.size(); ++i) {
      Client& client = clients.at(polled[i]);
      short events = polls[i + 2].revents;
      if ((events & POLLOUT) != 0) flush(client);
      if ((events & POLLIN) != 0) read_from(polled[i], client);
      if ((events & (POLLERR | POLLNVAL)) != 0) client.fd.reset();
      if ((events & POLLHUP) != 0 && (events & POLLIN) == 0) client.fd.reset();
    }
    for (auto& [id, client] : clients) {
      if (client.fd.valid() && client.out.empty()) take_requests(id, client);
      if (client.fd.valid() && Clock::now() >= client.deadline) expire(client);
    }
    std::erase_if(clients, [this](const auto& entry) { return finished(entry.second); });
    if (clients.size() < limits.clients_max) crowded = false;
    if (polls[1].revents != 0) accept_clients();
    if (!reserve.valid()) reserve.reset(::eventfd(0, EFD_CLOEXEC));
  }
  last_flush();
}

void AdminServer::State::last_flush() {
  take_answers();
  auto deadline = Clock::now() + kLastFlush;
  for (auto& [id, client] : clients) {
    while (flush(client) && !client.out.empty() && Clock::now() < deadline) {
      pollfd wait{.fd = client.fd.get(), .events = POLLOUT, .revents = 0};
      ::poll(&wait, 1, poll_timeout(deadline));
    }
  }
  clients.clear();
}

AdminServer::AdminServer() : AdminServer(AdminLimits{}) {}
AdminServer::AdminServer(AdminLimits limits) : state_(std::make_unique<State>()) {
  state_->limits = limits;
}
AdminServer::~AdminServer() { stop(); }

std::function<void(AdminRequest, AdminReply)> answer_at_once(
    std::function<AdminResponse(const AdminRequest&)> callback) {
  return [callback = std::move(callback)](AdminRequest request, AdminReply reply) {
    AdminResponse response;
    try {
      response = callback(request);
    } catch (const std::exception& fault) {
      response = AdminResponse::failure(fault.what());
    }
    reply.answer(std::move(response));
  };
}

void AdminServer::on(std::string command,
                     std::function<AdminResponse(const AdminRequest&)> callback) {
  on_later(std::move(command), answer_at_once(std::move(callback)));
}

void AdminServer::on_later(std::string command,
                           std::function<void(AdminRequest, AdminReply)> callback) {
  std::lock_guard lock(state_->commands_mutex);
  state_->commands[std::move(command)] = std::move(callback);
}

std::string AdminServer::open(const std::string& path) {
  if (!state_->outbox->event.valid()) return "cannot create an eventfd for the admin socket";
  Outcome<UniqueFd> listener = listen_at(path);
  if (!listener.ok()) return listener.error;
  state_->path = path;
  if (::lstat(path.c_str(), &state_->identity) != 0) return system_error("use", path, errno);
  state_->listener = std::move(*listener.value);
  state_->reserve.reset(::eventfd(0, EFD_CLOEXEC));
  return "";
}

std::string AdminServer::start() {
  try {
    state_->thread = std::thread([state = state_.get()] { state->run(); });
  } catch (const std::system_error& fault) {
    return std::string("cannot start the thread of the admin socket: ") + fault.what();
  }
  return "";
}

void AdminServer::stop() {
  if (state_->thread.joinable()) {
    {
      std::lock_guard lock(state_->outbox->mutex);
      state_->outbox->stopping = true;
    }
    state_->outbox->wake();
    state_->thread.join();
  }
  if (!state_->listener.valid()) return;
  struct stat now{};
  bool ours = ::lstat(state_->path.c_str(), &now) == 0 && now.st_ino == state_->identity.st_ino &&
              now.st_dev == state_->identity.st_dev;
  if (ours) ::unlink(state_->path.c_str());
  state_->listener.reset();
}

}  // namespace otp::release
