"""`python_test`: a Python program as a test.

    load("//bazel:python_test.bzl", "python_test")

    python_test(
        name = "report_test",
        size = "small",
        src = "report_test.py",
        data = ["report.py"],
    )

`args` come after the program. It runs in the default build alone: a sanitizer sees nothing of
Python.
"""

def python_test(name, src, args = [], data = [], tags = [], **options):
    native.sh_test(
        name = name,
        srcs = ["//bazel:python_test.sh"],
        args = ["$(location %s)" % src] + args,
        data = [src] + data,
        tags = tags + ["no-asan", "no-tsan"],
        **options
    )
