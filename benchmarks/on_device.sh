#!/usr/bin/env bash
# Build, test and measure on a machine with an NVIDIA GPU; prints a short table last.
# usage: benchmarks/on_device.sh [OUTPUT_FOLDER]   (from the repository's root)
set -u
output=${1:-device-output}
mkdir -p "$output"
export PYTHONPATH=$PWD/src${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
python3 setup.py -q build_ext --inplace >"$output/build.txt" 2>&1 || tail -5 "$output/build.txt"
timeout 240 python3 -m pytest tests/every_target tests/cuda tests/interop -m "gpu and not soak" -q -p no:cacheprovider \
    --require-target cuda >"$output/tests.txt" 2>&1
measure() {
    topic=$1 limit=$2
    shift 2
    timeout "$limit" python3 "benchmarks/$topic.py" "$@" >"$output/$topic.txt" 2>&1 ||
        echo "$topic ended with $? (124: its $limit s were over): $(tail -n 1 "$output/$topic.txt")"
}
for topic in raw_launch raw_start array_launch array_start runtime_objects; do
    measure $topic 120
done
measure array_kernels 300 --seconds 250
cp benchmarks/results/*"$(date +%Y-%m-%d)".json "$output" 2>/dev/null
grep -E "^(FAILED|ERROR)|passed|failed" "$output/tests.txt" | cut -c1-180 | tail -40
tail -n 12 "$output"/{raw_launch,raw_start,array_launch,array_start,runtime_objects}.txt
grep -E "BELOW|rows measured|^failed|^not |ended at" "$output/array_kernels.txt"
