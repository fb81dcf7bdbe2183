"""The compiler's command line that only reads a file, for rules that look at what it says."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# What a rule or aspect that calls syntax_only() needs.
SYNTAX_ONLY_ATTRS = {
    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
}
SYNTAX_ONLY_FRAGMENTS = ["cpp"]
SYNTAX_ONLY_TOOLCHAINS = ["@bazel_tools//tools/cpp:toolchain_type"]

def syntax_only(ctx, context, local_defines = []):
    """Returns struct(command, inputs): what compiles a file, whose path comes last, to nothing.

    Args:
      ctx: of a rule or aspect with the attributes, fragments and toolchains above.
      context: the compilation context that the file sees.
      local_defines: the target's own.
    """
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features + ["layering_check", "module_maps"],
    )
    warnings = ["-Wall", "-Wextra", "-Werror"]
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + warnings,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = depset(local_defines, transitive = [context.defines]),
    )
    tool = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
    )
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = variables,
    )
    return struct(
        command = [tool] + flags + ["-fsyntax-only"],
        inputs = depset(transitive = [context.headers, toolchain.all_files]),
    )

SYNTAX_ONLY_ENV = {"PATH": "/usr/bin:/bin", "PWD": "/proc/self/cwd"}
