"""The compiler refuses each source here, gives the reason first, and says it in few lines.

Usage: diagnostics_test.py FOLDER. Each <name>.cc there begins with lines `// EXPECT: <text>`; the
texts must stand in the first error of <name>.cc.said, its notes included; the whole stays short.
"""

import os
import re
import sys
import xml.sax.saxutils

LINES_MAX = 20


def expectations(source):
    found = re.findall(r"^// EXPECT: (.+)$", source, re.M)
    return found or ["(an EXPECT line in the source)"]


def problems(source, said):
    """Yields what is wrong with the diagnostics `said` of `source`."""
    lines = said.rstrip("\n").split("\n")
    status = lines.pop()
    if status == "status 0":
        yield "it compiles"
        return
    errors = [number for number, line in enumerate(lines) if " error: " in line]
    first = errors[0] if errors else 0
    second = errors[1] if len(errors) > 1 else len(lines)
    text = "\n".join(lines[first:second])
    for expected in expectations(source):
        if expected not in text:
            yield f"the first error does not say: {expected}"
    if len(lines) > LINES_MAX:
        yield f"{len(lines)} lines, at most {LINES_MAX}"


def check(folder):
    """Returns {name of a source: [problem]}; prints what the compiler said of those with one."""
    results = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".cc"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            source = stream.read()
        with open(os.path.join(folder, name + ".said"), encoding="utf-8") as stream:
            said = stream.read()
        results[name] = list(problems(source, said))
        for problem in results[name]:
            print(f"{name}: {problem}")
        if results[name]:
            print(said)
    return results


def write_xml(path, results):
    failures = sum(1 for found in results.values() if found)
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'<testsuite name="diagnostics" tests="{len(results)}" failures="{failures}">\n')
        for name, found in results.items():
            failure = "".join(
                f"<failure message={xml.sax.saxutils.quoteattr(problem)}/>" for problem in found[:1]
            )
            out.write(f'<testcase name="the compiler refuses {name}">{failure}</testcase>\n')
        out.write("</testsuite>\n")


def main():
    results = check(sys.argv[1])
    if "XML_OUTPUT_FILE" in os.environ:
        write_xml(os.environ["XML_OUTPUT_FILE"], results)
    print(f"{len(results)} sources")
    return 0 if results and not any(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
