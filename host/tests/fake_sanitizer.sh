#!/bin/sh
# Called like compute-sanitizer: runs the program that follows the options, and says whether something was found.
while [ "${1#--}" != "$1" ]; do
    shift 2
done
"$@"
if [ -n "$FAKE_SANITIZER_FINDS" ]; then
    echo "Invalid __global__ write"
    exit 86
fi
