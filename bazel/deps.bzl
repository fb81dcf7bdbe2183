"""The outside libraries and the rule sets, all from Debian packages, nothing downloaded.

A user's WORKSPACE needs two lines after it named this repository `otp`:

    load("@otp//bazel:deps.bzl", "otp_dependencies")
    otp_dependencies()

A repository that the user has defined before under the same name is left alone. bazel/setup.sh
lists the Debian packages. Libraries come without `hdrs` and `includes`: their headers lie on the
compiler's own search path (/usr/include), and adding that path a second time breaks
`#include_next <stdlib.h>`.
"""

_LIB = "/usr/lib/x86_64-linux-gnu"

def _need(ctx, path, package):
    """Fails with the name of the Debian package when `path` is missing."""
    if not ctx.path(path).exists:
        fail("%s is missing: install the Debian package %s" % (path, package))

# --- Rule sets ----------------------------------------------------------------------------------

_CC_RULES = [
    "cc_binary",
    "cc_import",
    "cc_library",
    "cc_proto_library",
    "cc_test",
    "cc_toolchain",
    "cc_toolchain_suite",
    "fdo_prefetch_hints",
    "fdo_profile",
    "objc_import",
    "objc_library",
]

def _rules_cc_impl(ctx):
    # Debian's bazel-rules-cc is too new for Debian's Bazel, so the native rules go by this name.
    lines = ["%s = native.%s" % (rule, rule) for rule in _CC_RULES]
    ctx.file("WORKSPACE", "workspace(name = \"rules_cc\")\n")
    ctx.file("BUILD", "")
    ctx.file("cc/defs.bzl", "\n".join(lines) + "\n")
    ctx.file("cc/BUILD", """
package(default_visibility = ["//visibility:public"])
alias(name = "toolchain_type", actual = "@bazel_tools//tools/cpp:toolchain_type")
alias(name = "current_cc_toolchain", actual = "@bazel_tools//tools/cpp:current_cc_toolchain")
""")

_rules_cc = repository_rule(implementation = _rules_cc_impl)

def _remote_coverage_tools_impl(ctx):
    # Every test rule refers to these two; they run only under `bazel coverage`, which is not used.
    ctx.file("WORKSPACE", "workspace(name = \"remote_coverage_tools\")\n")
    ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])
filegroup(name = "coverage_report_generator", srcs = [])
filegroup(name = "lcov_merger", srcs = [])
""")

_remote_coverage_tools = repository_rule(implementation = _remote_coverage_tools_impl)

def _debian_rules_impl(ctx):
    _need(ctx, ctx.attr.path, ctx.attr.package)
    for entry in ctx.path(ctx.attr.path).readdir():
        ctx.symlink(entry, entry.basename)

_debian_rules = repository_rule(
    implementation = _debian_rules_impl,
    attrs = {"path": attr.string(mandatory = True), "package": attr.string(mandatory = True)},
)

# --- Libraries ----------------------------------------------------------------------------------

# The public targets of Abseil that code here may name. Debian's 20220623 has 64 static archives
# that refer to each other; they stand behind one target, and the linker takes the members it needs.
_ABSL_TARGETS = {
    "algorithm": ["algorithm", "container"],
    "base": ["base", "config", "core_headers", "dynamic_annotations", "endian"],
    "cleanup": ["cleanup"],
    "container": [
        "btree",
        "fixed_array",
        "flat_hash_map",
        "flat_hash_set",
        "inlined_vector",
        "node_hash_map",
        "node_hash_set",
    ],
    "debugging": ["stacktrace", "symbolize"],
    "functional": ["any_invocable", "bind_front", "function_ref"],
    "hash": ["hash"],
    "memory": ["memory"],
    "meta": ["type_traits"],
    "numeric": ["bits", "int128"],
    "random": ["random"],
    "status": ["status", "statusor"],
    "strings": ["cord", "str_format", "strings"],
    "synchronization": ["synchronization"],
    "time": ["time"],
    "types": ["optional", "span", "variant"],
    "utility": ["utility"],
}

def _absl_impl(ctx):
    _need(ctx, _LIB + "/libabsl_base.a", "libabsl-dev")
    for file in ctx.path(_LIB).readdir():
        if file.basename.startswith("libabsl_") and file.basename.endswith(".a"):
            ctx.symlink(file, "lib/" + file.basename)
    ctx.file("WORKSPACE", "workspace(name = \"com_google_absl\")\n")
    ctx.file("BUILD", """
package(default_visibility = [":__subpackages__"])
cc_library(name = "archives", srcs = glob(["lib/*.a"]), linkopts = ["-pthread"])
""")
    for folder, targets in _ABSL_TARGETS.items():
        lines = ["package(default_visibility = [\"//visibility:public\"])"]
        for target in targets:
            lines.append("cc_library(name = \"%s\", deps = [\"//:archives\"])" % target)
        ctx.file("absl/%s/BUILD" % folder, "\n".join(lines) + "\n")

_absl = repository_rule(implementation = _absl_impl)

def _system_library_impl(ctx):
    _need(ctx, ctx.attr.header, ctx.attr.package)
    if ctx.attr.archive:
        _need(ctx, _LIB + "/" + ctx.attr.archive, ctx.attr.package)
        ctx.symlink(_LIB + "/" + ctx.attr.archive, ctx.attr.archive)
    ctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % ctx.name)
    ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])
cc_library(name = "%s", srcs = %r, defines = %r, linkopts = %r)
""" % (
        ctx.attr.target,
        [ctx.attr.archive] if ctx.attr.archive else [],
        ctx.attr.defines,
        ctx.attr.linkopts,
    ))

# One library of a Debian package: a header that must be there and, unless header-only, an archive.
_system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "archive": attr.string(),
        "defines": attr.string_list(),
        "header": attr.string(mandatory = True),
        "linkopts": attr.string_list(default = ["-pthread"]),
        "package": attr.string(mandatory = True),
        "target": attr.string(mandatory = True),
    },
)

# --- The macro ----------------------------------------------------------------------------------

def _maybe(rule, name, **kwargs):
    if not native.existing_rule(name):
        rule(name = name, **kwargs)

def otp_dependencies():
    """Defines each outside repository that the calling WORKSPACE has not defined yet.

    Libraries: @com_google_absl//absl/..., @boost, @yaml-cpp, @catch2, @sqlite3 (each //:<name>).
    """
    _maybe(_rules_cc, "rules_cc")
    _maybe(_remote_coverage_tools, "remote_coverage_tools")
    rules = {
        "bazel_skylib": ("/usr/share/bazel/tools/skylib", "bazel-skylib"),
        "platforms": ("/usr/share/bazel/tools/platforms", "bazel-platforms"),
        "rules_java": ("/usr/share/bazel/rules/java", "bazel-rules-java"),
        "rules_proto": ("/usr/share/bazel/rules/proto", "bazel-rules-proto"),
    }
    for name, (path, package) in rules.items():
        _maybe(_debian_rules, name, path = path, package = package)

    _maybe(_absl, "com_google_absl")
    _maybe(
        _system_library,
        "boost",
        target = "boost",
        package = "libboost1.81-dev",
        header = "/usr/include/boost/asio.hpp",
        # Exceptions and coroutines as they are; the deprecated spellings of Asio stay unseen.
        defines = ["BOOST_ASIO_NO_DEPRECATED"],
    )
    _maybe(
        _system_library,
        "yaml-cpp",
        target = "yaml-cpp",
        package = "libyaml-cpp-dev",
        header = "/usr/include/yaml-cpp/yaml.h",
        archive = "libyaml-cpp.a",
    )
    _maybe(
        _system_library,
        "catch2",
        target = "catch2",
        package = "catch2",
        header = "/usr/include/catch2/catch.hpp",
    )
    _maybe(
        _system_library,
        "sqlite3",
        target = "sqlite3",
        package = "libsqlite3-dev",
        header = "/usr/include/sqlite3.h",
        archive = "libsqlite3.a",
        linkopts = ["-pthread", "-ldl", "-lm"],
    )
