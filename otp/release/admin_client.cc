#include "otp/release/admin_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "otp/release/admin_socket.h"

namespace otp::release {
namespace {

constexpr size_t kAnswerBytesMax = 65u << 20;

AdminResponse parse_answer(const std::string& line) {
  boost::system::error_code error;
  json::value answer = json::parse(line, error);
  const json::object* object = error ? nullptr : answer.if_object();
  const json::value* ok = object ? object->if_contains("ok") : nullptr;
  if (ok == nullptr || !ok->is_bool())
    return AdminResponse::failure("the node's answer is not JSON");
  if (ok->as_bool()) {
    const json::value* result = object->if_contains("result");
    return AdminResponse::success(result ? *result : json::value());
  }
  const json::value* why = object->if_contains("error");
  bool told = why != nullptr && why->is_string();
  return AdminResponse::failure(told ? std::string(why->as_string()) : "the node refused");
}

}  // namespace

AdminClient::AdminClient(const std::string& socket_path, std::chrono::milliseconds within)
    : within_(within) {
  Connection connection = connect_to(socket_path, Clock::now() + within);
  if (connection.error_number == 0) {
    reach_ = Reach::connected;
    fd_ = std::move(connection.fd);
    node_pid_ = peer_pid(fd_.get());
    return;
  }
  bool nobody = connection.error_number == ENOENT || connection.error_number == ECONNREFUSED ||
                connection.error_number == ENOTDIR;
  reach_ = nobody ? Reach::nobody : Reach::failed;
  error_ = connection.error;
}

AdminResponse AdminClient::ask(const AdminRequest& request) {
  if (!fd_.valid()) return AdminResponse::failure(error_);
  auto deadline = Clock::now() + within_;
  std::string line =
      json::serialize(json::object{{"command", request.command}, {"args", request.args}}) + "\n";
  for (size_t sent = 0; sent < line.size();) {
    ssize_t count = ::send(fd_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) break;  // it may have said why before it closed
    pollfd wait{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    if (errno != EAGAIN || ::poll(&wait, 1, poll_timeout(deadline)) == 0) {
      return AdminResponse::failure("the node does not take the request");
    }
  }
  return read_answer(deadline);
}

AdminResponse AdminClient::read_answer(Clock::time_point deadline) {
  char chunk[16 * 1024];
  size_t searched = 0;
  while (true) {
    size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return parse_answer(line);
    }
    searched = buffer_.size();
    if (searched > kAnswerBytesMax) return AdminResponse::failure("the node's answer does not end");
    ssize_t count = ::recv(fd_.get(), chunk, sizeof chunk, 0);
    if (count > 0) {
      buffer_.append(chunk, static_cast<size_t>(count));
    } else if (count == 0 || errno == ECONNRESET) {
      closed_ = true;
      return AdminResponse::failure("the node closed the connection without an answer");
    } else if (errno == EAGAIN) {
      pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, poll_timeout(deadline)) == 0) {
        return AdminResponse::failure("no answer within " + std::to_string(within_.count()) +
                                      " ms");
      }
    } else if (errno != EINTR) {
      return AdminResponse::failure(system_error("read", "the node's answer", errno));
    }
  }
}

bool AdminClient::wait_closed(Clock::time_point deadline) {
  char chunk[1024];
  while (fd_.valid()) {
    ssize_t count = ::recv(fd_.get(), chunk, sizeof chunk, 0);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count == 0 || errno != EAGAIN) break;
    pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, poll_timeout(deadline)) == 0) return false;
  }
  return true;
}

}  // namespace otp::release
