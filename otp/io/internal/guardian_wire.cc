#include "otp/io/internal/guardian_wire.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace otp::io::internal {
namespace {

template <class Number>
void put(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

void put_list(std::string& out, const std::vector<std::string>& list) {
  put(out, static_cast<uint32_t>(list.size()));
  for (const std::string& text : list) put_text(out, text);
}

/// Reads what put() wrote; once something is missing, `good` stays false.
struct Reader {
  std::string_view rest;
  bool good = true;

  template <class Number>
  Number number() {
    Number value{};
    if (rest.size() < sizeof value) return good = false, value;
    std::memcpy(&value, rest.data(), sizeof value);
    rest.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<uint32_t>();
    if (!good || rest.size() < size) return good = false, std::string();
    std::string value(rest.substr(0, size));
    rest.remove_prefix(size);
    return value;
  }
  std::vector<std::string> list() {
    std::vector<std::string> values;
    const auto size = number<uint32_t>();
    for (uint32_t i = 0; good && i < size; ++i) values.push_back(text());
    return values;
  }
};

}  // namespace

std::string WireMessage::encode() const {
  std::string out;
  put(out, static_cast<uint8_t>(kind));
  put(out, static_cast<uint8_t>(by_signal));
  put(out, id);
  put(out, pid);
  put(out, code);
  put(out, session);
  put(out, start_ticks);
  put_text(out, text);
  put_list(out, argv);
  put_list(out, env);
  return out;
}

std::optional<WireMessage> WireMessage::decode(std::string_view bytes) {
  Reader reader{.rest = bytes};
  WireMessage message;
  const auto kind = reader.number<uint8_t>();
  if (kind < static_cast<uint8_t>(Kind::hello) || kind > static_cast<uint8_t>(Kind::exited)) {
    return std::nullopt;
  }
  message.kind = static_cast<Kind>(kind);
  message.by_signal = reader.number<uint8_t>() != 0;
  message.id = reader.number<uint64_t>();
  message.pid = reader.number<int32_t>();
  message.code = reader.number<int32_t>();
  message.session = reader.number<int32_t>();
  message.start_ticks = reader.number<uint64_t>();
  message.text = reader.text();
  message.argv = reader.list();
  message.env = reader.list();
  if (!reader.good || !reader.rest.empty()) return std::nullopt;
  return message;
}

WireOutcome wire_send(int socket, const std::string& bytes,
                      const std::vector<Descriptor>& streams) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kStandardStreams)] = {};
  if (streams.size() == kStandardStreams) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * kStandardStreams);
    int numbers[kStandardStreams];
    for (size_t i = 0; i < kStandardStreams; ++i) numbers[i] = streams[i].get();
    std::memcpy(CMSG_DATA(rights), numbers, sizeof numbers);
  }
  while (::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    // ETOOMANYREFS: too many descriptors are on their way; they will have arrived in a moment.
    const bool later =
        errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS;
    return later ? WireOutcome::would_block : WireOutcome::closed;
  }
  return WireOutcome::done;
}

WireOutcome wire_receive(int socket, std::string& bytes, std::vector<Descriptor>& streams) {
  streams.clear();
  bytes.resize(kDatagramBytesMax);
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kStandardStreams)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got = 0;
  while ((got = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EINTR) continue;
    return errno == EAGAIN ? WireOutcome::would_block : WireOutcome::closed;
  }
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&header); part_of != nullptr;
       part_of = CMSG_NXTHDR(&header, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part_of) + i * sizeof number, sizeof number);
      streams.emplace_back(number);
    }
  }
  // A datagram of no bytes is how the end of a SOCK_SEQPACKET connection looks; we send none such.
  if (got == 0) return WireOutcome::closed;
  bytes.resize(static_cast<size_t>(got));
  return WireOutcome::done;
}

}  // namespace otp::io::internal
