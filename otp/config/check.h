// Checks a configuration file against the applications of a program, before anything starts.
//
//   application: bank
//   settings: {currency: EUR}            # optional: a struct of the application
//   run_dir: /var/lib/bank               # optional: for lock, socket, pid file and log
//   supervisor:
//     strategy: rest_for_one
//     children:
//       - {id: ledger, start: Ledger, name: ledger, args: {opening_cents: 100}}
//       - {id: teller, start: Teller, args: {ledger: ledger}}
//       - id: workers
//         supervisor: {children: []}
//
// Imports. `imports: [prod.yaml]` at the top lays other files on this one, in their order: the last
// wins. Mappings are merged key by key and children by their ids; any other value replaces. Names
// are relative to the importing file, and may be placeholders: `imports: ["${BANK_ENV:dev}.yaml"]`.
//
// Overrides. A variable of the environment whose name begins with the application's name in
// capitals and two underscores replaces one value of the file, or adds it:
//
//   BANK__CURRENCY=USD                   the setting `currency`
//   BANK__LIMITS__DAILY=5                the field `daily` of the setting `limits`
//   BANK__LEDGER__OPENING_CENTS=0        the argument `opening_cents` of the child `ledger`
//   BANK__WORKERS__POOL__SIZE=4          the argument `size` of the child `pool` of the supervisor
//   `workers`
//
// Each element is a name of the file in capitals, every character other than a letter or a digit as
// an underscore. A value for a list, a mapping or a struct is written in YAML, any other as the
// plain text. Entries of a mapping can be overridden when the file has them; the words of children
// (`restart`, `shutdown`, ...) and items of lists cannot. A variable with the application's prefix
// that fits nothing is an error: a misspelt override would be a silent default.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/base/result.h"
#include "otp/config/declarations.h"
#include "otp/config/diagnostic.h"
#include "otp/config/environment.h"
#include "otp/config/imports.h"

namespace otp::config {

/// Reads a file of the file system, whatever it is: a pipe too, and no more than a configuration
/// may have, as some files have no end.
///
/// Errors: what the system says, such as `Is a directory`; `more than 16MiB`.
std::optional<std::string> read_file(const std::string& path, std::string& error);

/// Changes a configuration's text before it is read: gets what the one before has made of the file,
/// returns the new text. OTP: Elixir's Config.Provider.
using Provider = std::function<Result<std::string>(std::string yaml)>;

struct CheckOptions {
  /// Check the file by itself, for another machine: placeholders without a default count as good
  /// and overrides are not looked at. The result is not fit to be started.
  bool no_env = false;
  /// How the files of `imports` are read.
  ReadFile read = read_file;
  /// Run in this order, at every check of this machine's configuration; not with no_env.
  std::vector<Provider> providers = {};
};

struct CheckResult {
  std::optional<Configuration> configuration;  ///< set exactly when nothing is wrong
  std::vector<Diagnostic> diagnostics;         ///< in the order of the file
  std::string file;

  bool ok() const { return configuration.has_value(); }
  /// A line `file:line:column: expected …, got …` for each mistake.
  std::string text() const;
};

/// Reads a configuration and reports all its mistakes together; after a syntax error, that one
/// alone.
///
/// Takes: yaml: the file's bytes. file: its name, for messages. applications: those of the program.
CheckResult check(std::string_view yaml, const std::string& file,
                  const std::vector<ApplicationDecl>& applications,
                  const Environment& environment = process_environment(),
                  CheckOptions options = {});

}  // namespace otp::config
