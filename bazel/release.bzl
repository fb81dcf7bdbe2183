"""`otp_release`: a service as one tarball, the same bytes from the same inputs on any machine.

    load("@otp//bazel:release.bzl", "otp_release")

    otp_release(
        name = "bank",
        version = "1.4.0",
        binary = "//bank:main",
        config = "//bank:bank.yaml",
    )

makes `bank-1.4.0.tar.gz` with this layout (otp/release/README.md has its meaning):

    bank-1.4.0/
      release.json       {"name": "bank", "version": "1.4.0", "config": "config/bank.yaml",
                          "applications": {...}}
      bin/bank           `binary`, mode 0755
      config/bank.yaml   `config`, whatever its own name is
      config/<name>      each of `overlays`, under its own name
      <path>             each of `files`

A configuration with mistakes is no release: the program checks it while it is packed, and the modes
of `applications` too.

Directories and the program are 0755, everything else 0644, owner 0:0, times fixed: neither the
builder's umask, name nor folder, nor the modes in the checkout, leave a trace.
"""

_MODES = ["permanent", "transient", "temporary", "load", "none"]
_WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

def _check_word(what, text, extra):
    """Fails unless `text` is a letter or digit followed by letters, digits and `extra`."""
    good = text and text[0] in _WORD
    for i in range(len(text)):
        good = good and text[i] in _WORD + extra
    if not good:
        fail("otp_release: expected %s of letters, digits and %r, got %r" % (what, extra, text))

def _check_path(path):
    if not path or path.startswith("/") or path.endswith("/"):
        fail("otp_release: expected a file's path inside the release, got %r" % path)
    for part in path.split("/"):
        if part in ["", ".", ".."]:
            fail("otp_release: expected a plain path inside the release, got %r" % path)

def _impl(ctx):
    name = ctx.attr.release_name
    version = ctx.attr.version
    _check_word("a name", name, "_-")
    _check_word("a version", version, "._+-~")
    root = "%s-%s" % (name, version)

    manifest = ctx.actions.declare_file(ctx.label.name + ".release.json")
    config_path = "config/%s.yaml" % name
    for mode in ctx.attr.applications.values():
        if mode not in _MODES:
            fail("otp_release: expected one of the modes %s, got %r" % (", ".join(_MODES), mode))
    contents = {"name": name, "version": version, "config": config_path}
    if ctx.attr.applications:
        contents["applications"] = ctx.attr.applications
    ctx.actions.write(manifest, "{%s}\n" % ", ".join([
        "%s: %s" % (json.encode(key), json.encode(value))
        for key, value in contents.items()
    ]))

    entries = {"release.json": manifest, config_path: ctx.file.config}
    for file in ctx.files.overlays:
        entries[_new(entries, "config/" + file.basename)] = file
    for target, path in ctx.attr.files.items():
        files = target.files.to_list()
        if len(files) != 1:
            fail("otp_release: expected one file for %r, got %d" % (path, len(files)))
        _check_path(path)
        entries[_new(entries, path)] = files[0]

    program = "bin/" + name
    _new(entries, program)
    arguments = ["0755", ctx.executable.binary.path, program]
    for path, file in entries.items():
        arguments += ["0644", file.path, path]
    tarball = ctx.actions.declare_file(root + ".tar.gz")
    ctx.actions.run_shell(
        inputs = entries.values() + [ctx.executable.binary, ctx.file._pack],
        outputs = [tarball],
        command = "exec /bin/sh \"$@\"",
        arguments = [ctx.file._pack.path, "--check", program, tarball.path, root] + arguments,
        mnemonic = "OtpRelease",
        progress_message = "Packing %s" % tarball.basename,
    )
    return [DefaultInfo(files = depset([tarball]), runfiles = ctx.runfiles([tarball]))]

def _new(entries, path):
    """Returns `path`, which no other file of the release may have."""
    if path in entries:
        fail("otp_release: two files want to be %s" % path)
    return path

_otp_release = rule(
    implementation = _impl,
    attrs = {
        "applications": attr.string_dict(),
        "binary": attr.label(mandatory = True, executable = True, cfg = "target"),
        "config": attr.label(mandatory = True, allow_single_file = True),
        "files": attr.label_keyed_string_dict(allow_files = True),
        "overlays": attr.label_list(allow_files = True),
        "release_name": attr.string(mandatory = True),
        "version": attr.string(mandatory = True),
        "_pack": attr.label(default = "//bazel:pack_release.sh", allow_single_file = True),
    },
)

def otp_release(
        name,
        version,
        binary,
        config,
        release_name = None,
        overlays = [],
        files = {},
        applications = {},
        **kwargs):
    """Declares the release tarball `<name>-<version>.tar.gz`.

    Args:
      name: the target's name, and the release's and its program's without a release_name.
      version: any text of letters, digits, `.`, `_`, `+`, `-`, `~`.
      binary: the cc_binary whose main calls otp::run.
      config: the YAML tree that the program reads by default.
      release_name: the name of the release and its program.
      overlays: more configuration files, put beside `config` under their own names.
      files: {label: path inside the release} of anything else.
      applications: {name: mode} of applications that take part in another way than the program
        says; otp/application/application.h has the modes.
      **kwargs: visibility, tags, testonly.
    """
    _otp_release(
        name = name,
        version = version,
        binary = binary,
        config = config,
        release_name = release_name or name,
        overlays = overlays,
        files = files,
        applications = applications,
        **kwargs
    )
