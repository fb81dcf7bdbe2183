"""`compiler_says`: what the compiler says of sources that it must refuse, as files for a test."""

load(
    "//bazel:syntax_only.bzl",
    "SYNTAX_ONLY_ATTRS",
    "SYNTAX_ONLY_ENV",
    "SYNTAX_ONLY_FRAGMENTS",
    "SYNTAX_ONLY_TOOLCHAINS",
    "syntax_only",
)

def _impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    compiler = syntax_only(ctx, context)
    says = []
    for source in ctx.files.srcs:
        said = ctx.actions.declare_file(source.basename + ".said")
        ctx.actions.run_shell(
            inputs = depset([source], transitive = [compiler.inputs]),
            outputs = [said],
            command = "\"$@\" >{0} 2>&1; echo \"status $?\" >>{0}".format(said.path),
            arguments = compiler.command + ["-fno-color-diagnostics", source.path],
            env = SYNTAX_ONLY_ENV,
            mnemonic = "CompilerSays",
            progress_message = "Asking the compiler about %s" % source.short_path,
        )
        says.append(said)
    return [DefaultInfo(files = depset(says), runfiles = ctx.runfiles(says))]

# Writes <source>.said for each of `srcs`: the diagnostics, and in the last line `status N`.
compiler_says = rule(
    implementation = _impl,
    attrs = dict(
        SYNTAX_ONLY_ATTRS,
        srcs = attr.label_list(allow_files = [".cc"], mandatory = True),
        deps = attr.label_list(providers = [CcInfo]),
    ),
    fragments = SYNTAX_ONLY_FRAGMENTS,
    toolchains = SYNTAX_ONLY_TOOLCHAINS,
    incompatible_use_toolchain_transition = True,
)
