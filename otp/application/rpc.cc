#include "otp/application/rpc.h"

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "otp/application/application_table.h"
#include "otp/runtime/fault.h"

namespace otp::internal {

namespace {

using release::AdminReply;
using release::AdminRequest;
using release::AdminResponse;

struct Found {
  std::string application;
  ApplicationCommand command;
};
using Commands = std::vector<Found>;

std::string text_of(const json::object& args, const char* key) {
  const json::value* value = args.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

std::vector<std::string> arguments_of(const json::object& args) {
  std::vector<std::string> words;
  const json::value* list = args.if_contains("arguments");
  if (list == nullptr || !list->is_array()) return words;
  for (const json::value& word : list->as_array()) {
    words.push_back(word.is_string() ? std::string(word.as_string()) : json::serialize(word));
  }
  return words;
}

std::string unknown(const Commands& commands, const std::string& name) {
  std::string line = "unknown command '" + name + "'; there ";
  if (commands.empty()) return line + "are none";
  line += commands.size() == 1 ? "is " : "are ";
  for (size_t i = 0; i < commands.size(); ++i) {
    line += (i == 0 ? "" : ", ") + commands[i].command.name;
  }
  return line;
}

Async<void> run_command(Found found, std::vector<std::string> arguments, AdminReply reply) {
  if (ApplicationTable* table = application_table()) {
    self_process().set_group(table->group_of(found.application));
  }
  std::exception_ptr thrown;
  Result<std::string> result = std::string();
  try {
    result = co_await found.command.run(std::move(arguments));
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) result = reason_of(std::move(thrown));
  reply.answer(result.ok() ? AdminResponse::text(result.value())
                           : AdminResponse::failure(result.error().to_string()));
}

}  // namespace

void add_rpc_command(release::NodeCallbacks& callbacks, System& system,
                     const std::vector<Application>& applications) {
  auto commands = std::make_shared<Commands>();
  for (const Application& application : applications) {
    for (const ApplicationCommand& command : application.commands) {
      commands->push_back({application.name, command});
    }
  }
  callbacks.on_command_later("rpc", [&system, commands](AdminRequest request, AdminReply reply) {
    const std::string name = text_of(request.args, "command");
    for (const Found& found : *commands) {
      if (found.command.name != name) continue;
      system.spawn(run_command, found, arguments_of(request.args), std::move(reply));
      return;
    }
    reply.answer(AdminResponse::failure(unknown(*commands, name)));
  });
}

}  // namespace otp::internal
