"""The aspect behind --config=headers: each header of a cc_library compiles alone.

A header whose own source is in the library is left out: the source includes it first (a rule of
tests/tidy), so its compilation is the proof.
"""

load(
    "//bazel:syntax_only.bzl",
    "SYNTAX_ONLY_ATTRS",
    "SYNTAX_ONLY_ENV",
    "SYNTAX_ONLY_FRAGMENTS",
    "SYNTAX_ONLY_TOOLCHAINS",
    "syntax_only",
)

def _check(ctx, header, compiler):
    """Declares the action that compiles a file with nothing but the header; returns its stamp."""
    name = header.short_path.replace("/", "_") + ".alone"
    source = ctx.actions.declare_file(name + ".cc")
    stamp = ctx.actions.declare_file(name)
    ctx.actions.write(source, "#include \"%s\"\n" % header.short_path * 2)  # twice: the guard too
    ctx.actions.run_shell(
        inputs = depset([source], transitive = [compiler.inputs]),
        outputs = [stamp],
        command = "\"$@\" && : > " + stamp.path,
        arguments = compiler.command + [source.path],
        env = SYNTAX_ONLY_ENV,
        mnemonic = "HeaderAlone",
        progress_message = "Compiling %s alone" % header.short_path,
    )
    return stamp

def _headers_alone_impl(target, ctx):
    if target.label.workspace_root or CcInfo not in target or not hasattr(ctx.rule.attr, "hdrs"):
        return [OutputGroupInfo(headers_alone = depset())]
    compiler = syntax_only(
        ctx,
        target[CcInfo].compilation_context,
        getattr(ctx.rule.attr, "local_defines", []),
    )
    headers = [file for entry in ctx.rule.attr.hdrs for file in entry.files.to_list()]
    sources = [file.short_path for entry in ctx.rule.attr.srcs for file in entry.files.to_list()]
    stamps = [
        _check(ctx, header, compiler)
        for header in headers
        if header.extension == "h" and header.short_path[:-len("h")] + "cc" not in sources
    ]
    return [OutputGroupInfo(headers_alone = depset(stamps))]

headers_alone = aspect(
    implementation = _headers_alone_impl,
    attrs = SYNTAX_ONLY_ATTRS,
    fragments = SYNTAX_ONLY_FRAGMENTS,
    toolchains = SYNTAX_ONLY_TOOLCHAINS,
    incompatible_use_toolchain_transition = True,
)
