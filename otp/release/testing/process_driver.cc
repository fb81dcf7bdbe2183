#include "otp/release/testing/process_driver.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <tuple>

#include "otp/base/compiler.h"

namespace otp::release::testing {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr int kPollEveryMs = 5;

[[noreturn]] void become(const std::vector<std::string>& argv, const RunOptions& options, int out,
                         int err) {
  UniqueFd in(open(options.input.c_str(), O_RDWR | O_CLOEXEC));
  dup2(in.get(), 0);
  dup2(out, 1);
  dup2(options.errors_with_output ? out : err, 2);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
  options.in_child();
  for (int fd : options.closed) close(fd);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<std::string> settings;
  for (const auto& [key, value] : options.environment) settings.push_back(key + "=" + value);
  std::vector<char*> environment;
  for (std::string& setting : settings) environment.push_back(setting.data());
  environment.push_back(nullptr);
  execve(words[0], words.data(), environment.data());
  _exit(127);
}

std::string program_under_test() {
  const char* given = getenv("FAKE_SERVICE");
  return given != nullptr ? given : "otp/release/testing/fake_service";
}

}  // namespace

Running::Running(const std::vector<std::string>& argv, const RunOptions& options) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  pid_ = fork();
  if (pid_ == 0) become(argv, options, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  out_fd_.reset(out[0]);
  err_fd_.reset(err[0]);
}

Running::~Running() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Running::read_some(Clock::time_point deadline) {
  pollfd polls[] = {{.fd = out_fd_.get(), .events = POLLIN, .revents = 0},
                    {.fd = err_fd_.get(), .events = POLLIN, .revents = 0}};
  if (!out_fd_.valid() && !err_fd_.valid()) return false;
  if (poll(polls, 2, poll_timeout(deadline)) <= 0) return false;
  char buffer[4096];
  for (auto [index, fd, text] : {std::tuple{0, &out_fd_, &out_}, std::tuple{1, &err_fd_, &err_}}) {
    if (polls[index].revents == 0) continue;
    ssize_t count = read(fd->get(), buffer, sizeof buffer);
    if (count > 0) {
      text->append(buffer, static_cast<size_t>(count));
    } else {
      fd->reset();
    }
  }
  return true;
}

bool Running::wait_for_text(const std::string& text) {
  auto deadline = Clock::now() + kPatience;
  while (out_.find(text) == std::string::npos && err_.find(text) == std::string::npos) {
    if (!read_some(deadline)) return false;
  }
  return true;
}

void Running::stop_reading() {
  out_fd_.reset();
  err_fd_.reset();
}

Ran Running::wait() {
  auto deadline = Clock::now() + kPatience;
  while (read_some(deadline)) continue;
  bool hangs = out_fd_.valid() || err_fd_.valid();
  int status = 0;
  pid_t ended = 0;
  while (ended != pid_) {
    ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) break;
    if (Clock::now() >= deadline) {
      hangs = true;
      kill(pid_, SIGKILL);
    }
    poll(nullptr, 0, kPollEveryMs);
  }
  pid_ = -1;
  Ran ran{.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .out = out_,
          .err = err_};
  if (hangs) ran.status = -1;
  return ran;
}

Ran run(const std::vector<std::string>& argv, const RunOptions& options) {
  return Running(argv, options).wait();
}

Installed::Installed(const std::string& where) : root_(folder_ / where) {
  std::filesystem::create_directories(root_ + "/bin");
  std::filesystem::create_directories(root_ + "/config");
  std::filesystem::copy_file(program_under_test(), program());
  std::filesystem::permissions(program(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  write_file(root_ + "/release.json",
             R"({"name": "fake", "version": "1.0.0", "config": "config/fake.yaml"})");
  configure("details here\n");
}

Installed::~Installed() { run({program(), "stop"}); }

std::string Installed::events() const {
  std::string text = read_text(run_dir() + "/events");
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

Ran Installed::call(std::vector<std::string> words, const RunOptions& options) const {
  words.insert(words.begin(), program());
  return run(words, options);
}

long Installed::pid() const { return std::atol(call({"pid"}).out.c_str()); }

void open_gate(const std::string& path) { UniqueFd(open(path.c_str(), O_WRONLY | O_CLOEXEC)); }

std::string make_fifo(const std::string& path) {
  if (mkfifo(path.c_str(), 0666) != 0) throw std::runtime_error("mkfifo " + path);
  return path;
}

bool alive(long pid) { return pid > 0 && kill(static_cast<pid_t>(pid), 0) == 0; }

bool sanitized() {
#ifdef OTP_SANITIZED
  return true;
#else
  return false;
#endif
}

}  // namespace otp::release::testing
