#include "otp/release/admin_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

namespace otp::release {
namespace {

constexpr int kBacklog = 16;
constexpr std::chrono::milliseconds kRetryEvery{10};
constexpr std::chrono::milliseconds kStaleProbe{500};

/// bind or connect, as a function of the address. Returns 0 or an error number.
using AddressCall = std::function<int(const sockaddr_un&)>;

int call_with(const std::string& name, const AddressCall& call) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(sizeof address.sun_path == kSocketAddressBytesMax + 1);
  if (name.size() > kSocketAddressBytesMax) return ENAMETOOLONG;
  std::memcpy(address.sun_path, name.data(), name.size());
  return call(address);
}

/// The call made from inside `folder`, for systems without procfs.
int call_from_inside(int folder, const std::string& name, const AddressCall& call) {
  UniqueFd here(::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!here.valid() || ::fchdir(folder) != 0) return ENAMETOOLONG;
  int error = call_with("./" + name, call);
  if (::fchdir(here.get()) != 0 && error == 0) error = errno;
  return error;
}

int call_at(const std::string& path, const AddressCall& call) {
  if (path.size() <= kSocketAddressBytesMax) return call_with(path, call);
  size_t slash = path.rfind('/');
  UniqueFd folder(::open(path.substr(0, slash).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno;
  std::string name = path.substr(slash + 1);
  std::string by_descriptor = "/proc/self/fd/" + std::to_string(folder.get());
  struct stat through{};
  struct stat direct{};
  bool same = ::stat(by_descriptor.c_str(), &through) == 0 && ::fstat(folder.get(), &direct) == 0 &&
              through.st_ino == direct.st_ino && through.st_dev == direct.st_dev;
  if (same) return call_with(by_descriptor + "/" + name, call);
  return call_from_inside(folder.get(), name, call);
}

std::string describe(const char* verb, const std::string& path, int error) {
  if (error != ENAMETOOLONG) return system_error(verb, path, error);
  return std::string("cannot ") + verb + " " + path + ": the path has " +
         std::to_string(path.size()) + " bytes, a socket's address at most " +
         std::to_string(kSocketAddressBytesMax);
}

/// Clears the way for a new socket. Returns an error line or nothing.
std::string remove_stale(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return "";
  if (!S_ISSOCK(info.st_mode)) {
    return "cannot open the admin socket " + path + ": something else lies there, not a socket";
  }
  // The lock is ours, so a live socket means that somebody removed the lock file of a running node.
  Connection probe = connect_to(path, Clock::now() + kStaleProbe);
  if (probe.error_number == 0) {
    return "another node answers at " + path + " although its lock file is gone (pid " +
           std::to_string(peer_pid(probe.fd.get())) + "); stop it first";
  }
  if (::unlink(path.c_str()) != 0) return system_error("remove the stale socket", path, errno);
  return "";
}

}  // namespace

Outcome<UniqueFd> listen_at(const std::string& path) {
  using Failed = Outcome<UniqueFd>;
  std::string error = remove_stale(path);
  if (!error.empty()) return Failed::failure(error);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Failed::failure(system_error("create a socket for", path, errno));
  // Linux gives the name the mode of the socket, less the umask: never a moment with wider rights.
  ::fchmod(fd.get(), 0600);
  int failed = call_at(path, [&](const sockaddr_un& address) {
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    return ::bind(fd.get(), generic, sizeof address) == 0 ? 0 : errno;
  });
  if (failed == 0 && ::chmod(path.c_str(), 0600) != 0) failed = errno;
  if (failed == 0 && ::listen(fd.get(), kBacklog) != 0) failed = errno;
  if (failed != 0) return Failed::failure(describe("open the admin socket", path, failed));
  return fd;
}

Connection connect_to(const std::string& path, Clock::time_point deadline) {
  Connection connection;
  connection.fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection.fd.valid()) {
    connection.error_number = errno;
    connection.error = system_error("create a socket for", path, errno);
    return connection;
  }
  while (true) {
    connection.error_number = call_at(path, [&](const sockaddr_un& address) {
      const auto* generic = reinterpret_cast<const sockaddr*>(&address);
      return ::connect(connection.fd.get(), generic, sizeof address) == 0 ? 0 : errno;
    });
    if (connection.error_number == 0) return connection;
    // EAGAIN: the listener's queue is full; a Unix socket does not say when there is room again.
    if (connection.error_number != EAGAIN || Clock::now() >= deadline) break;
    ::poll(nullptr, 0, static_cast<int>(kRetryEvery.count()));
  }
  connection.error = describe("reach the admin socket", path, connection.error_number);
  connection.fd.reset();
  return connection;
}

long peer_pid(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.pid;
}

}  // namespace otp::release
