"""The aspect behind --config=headers: each header of a cc_library compiles alone."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _check(ctx, header, context, command, toolchain):
    """Declares the action that compiles a file with nothing but the header; returns its stamp."""
    name = header.short_path.replace("/", "_") + ".alone"
    source = ctx.actions.declare_file(name + ".cc")
    stamp = ctx.actions.declare_file(name)
    ctx.actions.write(source, "#include \"%s\"\n" % header.short_path * 2)  # twice: the guard too
    ctx.actions.run_shell(
        inputs = depset([source], transitive = [context.headers, toolchain.all_files]),
        outputs = [stamp],
        command = "\"$@\" && : > " + stamp.path,
        arguments = command + ["-fsyntax-only", source.path],
        env = {"PATH": "/usr/bin:/bin", "PWD": "/proc/self/cwd"},
        mnemonic = "HeaderAlone",
        progress_message = "Compiling %s alone" % header.short_path,
    )
    return stamp

def _headers_alone_impl(target, ctx):
    if target.label.workspace_root or CcInfo not in target or not hasattr(ctx.rule.attr, "hdrs"):
        return [OutputGroupInfo(headers_alone = depset())]
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features + ["layering_check", "module_maps"],
    )
    context = target[CcInfo].compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts +
                             ["-Wall", "-Wextra", "-Werror"],
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = depset(
            getattr(ctx.rule.attr, "local_defines", []),
            transitive = [context.defines],
        ),
    )
    tool = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
    )
    command = [tool] + cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = variables,
    )
    headers = [file for entry in ctx.rule.attr.hdrs for file in entry.files.to_list()]
    stamps = [
        _check(ctx, header, context, command, toolchain)
        for header in headers
        if header.extension == "h"
    ]
    return [OutputGroupInfo(headers_alone = depset(stamps))]

headers_alone = aspect(
    implementation = _headers_alone_impl,
    attrs = {"_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain")},
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
