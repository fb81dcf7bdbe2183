#!/bin/sh
# Runs a Python program as a test: python_test.sh PROGRAM.py.
exec python3 "$@"
