#include "otp/release/init_process.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace otp::release {
namespace {

/// Reaps everything that has ended. Returns the node's exit status, or -1 while it lives.
int reap(pid_t node) {
  int node_status = -1;
  while (true) {
    int status = 0;
    pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended <= 0) return node_status;
    if (ended != node) continue;
    node_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

[[noreturn]] void serve_as_init(pid_t node, const sigset_t& all) {
  while (true) {
    siginfo_t info{};
    int number = ::sigwaitinfo(&all, &info);
    if (number < 0) continue;
    if (number == SIGCHLD) {
      int status = reap(node);
      if (status >= 0) ::_exit(status);
    } else if (info.si_code != SI_KERNEL || number == SIGHUP) {
      // The terminal's own signals go to its foreground group, which is the node's.
      ::kill(node, number);
    }
  }
}

/// Gives the node a process group of its own and, if there is a terminal, the foreground of it.
void take_foreground() {
  ::setpgid(0, 0);
  if (::tcgetpgrp(STDIN_FILENO) < 0) return;
  ::tcsetpgrp(STDIN_FILENO, ::getpgrp());  // TTOU is blocked here, so this does not stop us
}

}  // namespace

void become_init_if_process_1() {
  if (::getpid() != 1) return;
  sigset_t all;
  sigfillset(&all);
  // The hardware's own signals stay as they are: blocking them would only hide a fault.
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, number);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, nullptr);  // ignored, children would vanish without a status
  pid_t node = ::fork();
  if (node > 0) serve_as_init(node, all);
  if (node == 0) take_foreground();
}

}  // namespace otp::release
