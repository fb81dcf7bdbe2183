"""Each C++ example of a page stands in a source file, line by line, so that it compiles and runs.

usage: examples_test.py PAGE SOURCE...
"""

import re
import sys
import unittest

PAGE, SOURCES = sys.argv[1], sys.argv[2:]


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


class Examples(unittest.TestCase):
    def test_each_example_is_in_a_source(self):
        with open(PAGE, encoding="utf-8") as page:
            blocks = re.findall(r"```cpp\n(.*?)```", page.read(), re.S)
        codes = []
        for path in SOURCES:
            with open(path, encoding="utf-8") as source:
                codes.append(squeeze(source.read()))
        self.assertGreater(len(blocks), 0)
        for block in blocks:
            self.assertTrue(any(squeeze(block) in code for code in codes), block)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
