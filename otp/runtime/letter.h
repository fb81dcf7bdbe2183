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
#include "otp/base/format_value.h"
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
  void (*destroy)(void* payload) noexcept;                  // null when there is nothing to destroy
  void (*format)(BoundedWriter& out, const void* payload);  // for reports: may throw
  void (*format_taken)(BoundedWriter& out, const void* payload);  // after a callback was given it
};

template <class M>
void destroy_payload(void* payload) noexcept {
  static_cast<M*>(payload)->~M();
}

template <class M>
void format_payload(BoundedWriter& out, const void* payload) {
  format_value(out, *static_cast<const M*>(payload));
}

template <class M>
void format_taken_payload(BoundedWriter& out, const void* payload) {
  format_taken(out, *static_cast<const M*>(payload));
}

template <class M>
inline const MessageType message_type{
    type_name<M>(),     stable_hash<M>,
    sizeof(M),          std::is_trivially_destructible_v<M> ? nullptr : &destroy_payload<M>,
    &format_payload<M>, &format_taken_payload<M>};

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
  info,       // process_info: answered while draining, with a reply to `reference`
  aliased,    // a plain message sent to the alias `reference`
  exit,       // an explicit exit signal; payload: ExitReason
  link_exit,  // a linked process ended; payload: ExitReason
  down,       // a monitored process ended; payload: ExitReason
  timer,      // the process's wait timer fired
  wake,       // an operation outside the process is done: `reference` names it
};

/// The reference of a `wake` letter with which a System that ends asks a process what it waits for.
inline constexpr uint64_t kSayWhatHolds = ~0ull;

enum LetterFlags : uint8_t {
  kConsumed = 1,   // nobody needs it; freed as soon as it is no longer the inbox's anchor
  kFailed = 2,     // reply: the payload is an ExitReason, not the value
  kPayload = 4,    // there is a payload, and it has a destructor that must run
  kByName = 8,     // monitor, down: the target was named
  kDeadline = 16,  // call: `deadline()` is set
  kTagged = 64,    // down: a Term follows the reason
};

struct Letter {
  Atomic<Letter*> next{nullptr};
  const Operation* operation = nullptr;
  uint64_t sender = 0;  // the sender's pid id, 0 = not a process
  uint64_t reference = 0;
  uint32_t generation = 0;  // of the receiver for whom it is meant
  LetterKind kind = LetterKind::message;
  uint8_t flags = 0;
  uint16_t block = 0;  // 1 + the pool's class of this block; 0 = from operator new

  static constexpr size_t kHeader = 40;
  static constexpr size_t kInline = 24;

  std::byte* body() { return reinterpret_cast<std::byte*>(this) + kHeader; }
  /// Where the payload is: calls with a deadline keep that in the first 8 bytes.
  void* payload() { return body() + (flags & kDeadline ? 8 : 0); }
  const void* payload() const { return const_cast<Letter*>(this)->payload(); }
  /// There is a payload, which is an ExitReason (holds_reason()) or of the operation's type.
  bool has_payload() const { return holds_reason() || operation != nullptr; }
  bool holds_reason() const { return kind >= LetterKind::exit || (flags & kFailed) != 0; }
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
  /// REQUIRES: kTagged.
  Term& tag() { return *std::launder(reinterpret_cast<Term*>(body() + sizeof(ExitReason))); }
  template <class T>
  const T& as() const {
    return *std::launder(static_cast<const T*>(payload()));
  }
};
static_assert(sizeof(Letter) == Letter::kHeader);

/// A block with room for `payload` bytes. Header initialised, payload raw.
inline Letter* allocate_letter(size_t payload) {
  size_t bytes = Letter::kHeader + (payload < Letter::kInline ? Letter::kInline : payload);
  Letter* letter;
  if (bytes <= kPoolBlockMax) [[likely]] {
    letter = new (pool_allocate(bytes)) Letter;
    letter->block = static_cast<uint16_t>(pool_class(bytes) + 1);
  } else {
    letter = new (::operator new(bytes)) Letter;
  }
  return letter;
}

void run_payload_destructor(Letter* letter) noexcept;

inline void destroy_letter_payload(Letter* letter) noexcept {
  if (letter->flags & kPayload) [[unlikely]]
    run_payload_destructor(letter);
}

inline void free_letter(Letter* letter) noexcept {
  destroy_letter_payload(letter);
  if (const uint32_t block = letter->block; block != 0) [[likely]] {
    pool_free_class(letter, block - 1);
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
  if constexpr (!std::is_trivially_destructible_v<M>) letter->flags |= kPayload;
  return letter;
}

/// Prints a message for a report or for process_info: `call Increment{by: 2} from <0.5.1>`.
void format_letter(BoundedWriter& out, const Letter& letter);

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
