#pragma once

#include <cstdint>

namespace otp {

/// What becomes of a message for a process whose mailbox is full. In each case what was dropped is
/// counted. Ours; OTP has no limit.
enum class OnFull {
  reject,       ///< a call is answered with {mailbox_full,Pid}; anything else is dropped
  drop_newest,  ///< dropped; a caller waits until its timeout
  exit,         ///< the process exits with {mailbox_full,Pid}
};

/// How many messages may wait in a mailbox, and what happens to the next. Signals, replies and
/// system messages are exempt. Enforced by the receiver when it takes messages in, so what is sent
/// while one callback runs is held until that ends; otp::try_cast tells a sender before. Ours.
struct MailboxLimit {
  uint64_t letters_max = 0;  ///< 0 = no limit
  OnFull on_full = OnFull::reject;

  friend bool operator==(const MailboxLimit&, const MailboxLimit&) = default;
};

}  // namespace otp
