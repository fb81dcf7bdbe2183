#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "otp/base/atomic.h"
#include "otp/base/exit_reason.h"
#include "otp/base/pool.h"
#include "otp/base/reflect.h"

/// What travels between processes. A Letter is one message or one signal: 64 bytes with up to 24
/// bytes of payload, larger ones in one larger block. Letters are made by the sender, published by
/// the push into the receiver's inbox, and from then on belong to whoever runs the receiver.
namespace otp::internal {

/// One message type: a stable name and a hash of name and fields, never an address.
struct MessageType {
  std::string_view name;
  uint64_t hash;
  uint32_t size;
  void (*destroy)(void* payload) noexcept;  // null when there is nothing to destroy
};

template <class M>
void destroy_payload(void* payload) noexcept {
  static_cast<M*>(payload)->~M();
}

template <class M>
inline const MessageType message_type{
    type_name<M>(), stable_hash<M>, sizeof(M),
    std::is_trivially_destructible_v<M> ? nullptr : &destroy_payload<M>};

class Process;
struct Letter;

/// What a letter asks for: the message type and, when the sender knows the server's type, the code
/// that hands the payload to the right overload. One static object for each (server, message) pair.
struct Operation {
  const MessageType* type;
  const void* server;                                // the server type's descriptor, or null
  void (*invoke)(Process& process, Letter& letter);  // null for a plain message
};

template <class M>
inline const Operation plain_operation{&message_type<M>, nullptr, nullptr};

enum class LetterKind : uint8_t {
  start,    // the birth of a process: payload is its body (Process*)
  message,  // a plain message, for receive or handle_info
  call,     // a request: `sender` waits for a reply to `reference`
  cast,     // a request without a reply
  system,   // sys requests, answered between two messages: payload is a call's
  reply,    // the answer to `reference`; failed: the payload is an ExitReason
  result,   // a monitored process ended with this value: stands for its DOWN and its EXIT
  link,
  unlink,
  unlink_ack,
  monitor,
  demonitor,
  exit,       // an explicit exit signal; payload: ExitReason
  link_exit,  // a linked process ended; payload: ExitReason
  down,       // a monitored process ended; payload: ExitReason
  timer,      // the process's wait timer fired
  wake,       // an operation outside the process is done: `reference` names it
};

enum LetterFlags : uint8_t {
  kConsumed = 1,   // nobody needs it; freed as soon as it is no longer the inbox's anchor
  kFailed = 2,     // reply: the payload is an ExitReason, not the value
  kPayload = 4,    // there is a payload to destroy
  kByName = 8,     // monitor, down: the target was named
  kDeadline = 16,  // call: `deadline()` is set
};

struct Letter {
  Atomic<Letter*> next{nullptr};
  const Operation* operation = nullptr;
  uint64_t sender = 0;  // the sender's pid id, 0 = not a process
  uint64_t reference = 0;
  uint32_t generation = 0;  // of the receiver for whom it is meant
  LetterKind kind = LetterKind::message;
  uint8_t flags = 0;
  uint16_t bytes = 0;  // of this block; 0 = from operator new, size in `large`

  static constexpr size_t kHeader = 40;
  static constexpr size_t kInline = 24;

  std::byte* body() { return reinterpret_cast<std::byte*>(this) + kHeader; }
  /// Where the payload is: calls with a deadline keep that in the first 8 bytes.
  void* payload() { return body() + (flags & kDeadline ? 8 : 0); }
  int64_t deadline() {
    int64_t at;
    std::memcpy(&at, body(), sizeof at);
    return at;
  }
  void set_deadline(int64_t at) {
    flags |= kDeadline;
    std::memcpy(body(), &at, sizeof at);
  }
  template <class T>
  T& as() {
    return *std::launder(static_cast<T*>(payload()));
  }
};
static_assert(sizeof(Letter) == Letter::kHeader);

/// A block with room for `payload` bytes. Header initialised, payload raw.
inline Letter* allocate_letter(size_t payload) {
  size_t bytes = Letter::kHeader + (payload < Letter::kInline ? Letter::kInline : payload);
  Letter* letter;
  if (bytes <= kPoolBlockMax) [[likely]] {
    letter = new (pool_allocate(bytes)) Letter;
    letter->bytes = static_cast<uint16_t>(bytes);
  } else {
    letter = new (::operator new(bytes)) Letter;
  }
  return letter;
}

inline void destroy_letter_payload(Letter* letter) noexcept {
  if (!(letter->flags & kPayload)) return;
  letter->flags &= static_cast<uint8_t>(~kPayload);
  if (letter->kind >= LetterKind::exit || (letter->flags & kFailed)) {
    letter->as<ExitReason>().~ExitReason();
  } else if (letter->operation->type->destroy != nullptr) {
    letter->operation->type->destroy(letter->payload());
  }
}

inline void free_letter(Letter* letter) noexcept {
  destroy_letter_payload(letter);
  uint16_t bytes = letter->bytes;
  if (bytes != 0) [[likely]] {
    pool_free(letter, bytes);
  } else {
    ::operator delete(letter);
  }
}

/// A letter that carries `value`.
template <class M, class V>
Letter* make_letter(LetterKind kind, const Operation& operation, V&& value) {
  static_assert(alignof(M) <= 8, "a message must not need an alignment above 8 bytes");
  Letter* letter = allocate_letter(sizeof(M));
  letter->kind = kind;
  letter->operation = &operation;
  new (letter->payload()) M(std::forward<V>(value));
  letter->flags |= kPayload;
  return letter;
}

/// A signal that carries an exit reason.
inline Letter* make_signal(LetterKind kind, ExitReason reason) {
  Letter* letter = allocate_letter(sizeof(ExitReason));
  letter->kind = kind;
  new (letter->payload()) ExitReason(std::move(reason));
  letter->flags |= kPayload;
  return letter;
}

inline Letter* make_signal(LetterKind kind) {
  Letter* letter = allocate_letter(0);
  letter->kind = kind;
  return letter;
}

}  // namespace otp::internal
