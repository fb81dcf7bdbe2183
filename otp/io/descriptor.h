#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <variant>

namespace otp::io {

/// What the system refused, and the words for it: "open /var/lib/jobs: Permission denied".
struct SystemError {
  int code = 0;           ///< an errno value
  std::string what = {};  ///< what was tried

  std::string to_string() const;
  static SystemError last(std::string what);  ///< takes errno
};

/// Owns a file descriptor and closes it. Move only; -1 owns nothing.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

/// A pipe whose ends no started program inherits.
std::variant<Pipe, SystemError> make_pipe();

/// Reads and writes of `fd` return EAGAIN instead of waiting.
void set_nonblocking(int fd);

/// The whole of a small file, such as those under /proc; nothing if it cannot be read.
/// Takes: size_max: more than this is not read.
bool read_small_file(const std::string& path, std::string& text, size_t size_max = 1 << 20);

}  // namespace otp::io
