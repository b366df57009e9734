#!/usr/bin/env bash
# Runs every GPU check in at most ten minutes: the conformance kit, LeNet, and benchmarks of copies,
# kernels, GEMM and training steps, compared with cuBLAS and PyTorch. The script needs a driver, and
# Python with PyTorch. The script does not need cargo, because the programs are built beforehand.
#
#   scripts/gpu.sh build [FOLDER]   builds the programs into FOLDER, by default target/gpu
#   scripts/gpu.sh [FOLDER]         runs the checks with the programs in FOLDER
#
# A relative FOLDER is relative to the root of the repository.
#
# The report is $OUT/DEVICE-DATE.md; OUT is docs/gpu by default. If a part fails, the other parts
# still run and are reported, and the script fails. LeNet must reach an accuracy of 0.99 on MNIST,
# or of 0.97 on the built-in digits if MNIST is missing. MNIST is in $CORTADO_MNIST or FOLDER/mnist;
# `build` copies $CORTADO_MNIST to FOLDER/mnist.
#
# CORTADO_GPU_BRIEF=1 runs each part except PyTorch with small sizes, to test this script without a
# GPU. In that case, CORTADO_LIBCUDA must be the path of the simulated driver of tests/cuda_on_cpu,
# and CORTADO_CUBLAS the driver's folder.
set -euo pipefail
cd "$(dirname "$0")/.."

build() {
    local folder=$1 features=cuda,conformance
    mkdir -p "$folder"
    # Builds one target and prints the path of its executable, from cargo's JSON messages.
    build_target() {
        local kind=$1
        shift
        cargo "$@" --features "$features" --message-format json-render-diagnostics |
            sed -n "s/.*\"kind\":\[\"$kind\"\].*\"executable\":\"\([^\"]*\)\".*/\1/p"
    }
    # Strips and compresses a program, which contains the PTX of all kernels as text.
    pack() {
        strip -o "$folder/$2" "$1"
        gzip -9f "$folder/$2"
    }
    pack "$(build_target bin build --release --bin cortado)" cortado
    pack "$(build_target test test --release --no-run --test cuda)" kit
    pack "$(build_target bench bench --no-run --bench gpu)" bench
    git rev-parse HEAD >"$folder/commit"
    if [ -n "${CORTADO_MNIST:-}" ]; then
        mkdir -p "$folder/mnist"
        cp "$CORTADO_MNIST"/{train,t10k}-{images-idx3,labels-idx1}-ubyte* "$folder/mnist"
    fi
    du -ab "$folder"
    if [ "$(du -sm "$folder" | cut -f 1)" -ge 60 ]; then
        echo "$folder: over the limit of 60 MiB" >&2
        exit 1
    fi
}

if [ "${1:-}" = build ]; then
    build "${2:-target/gpu}"
    exit
fi

folder=$(realpath "${1:-target/gpu}")
brief=${CORTADO_GPU_BRIEF:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()
programs=$work/programs
mkdir "$programs"
for program in cortado kit bench; do
    gunzip -c "$folder/$program.gz" >"$programs/$program"
    chmod +x "$programs/$program"
done

# Runs a part of the checks with a time limit in seconds, and records its failure.
run_part() {
    local name=$1 seconds=$2 start=$SECONDS
    shift 2
    echo "== $name" >&2
    timeout --kill-after 5 "$seconds" "$@" ||
        failed+=("$name (status $?, after $((SECONDS - start)) s)")
}

# Prints the folder of the newest cuBLAS among Python's packages.
cublas_of_python() {
    python3 - <<'PYTHON'
import glob, site
for folder in site.getsitepackages() + [site.getusersitepackages()]:
    libraries = glob.glob(folder + "/nvidia/*/lib/libcublas.so.*")
    if libraries:
        newest = max(libraries, key=lambda path: int(path.split(".so.")[1].split(".")[0]))
        print(newest.rsplit("/", 1)[0])
        break
PYTHON
}

if [ -z "$brief" ]; then
    # Makes the tests fail if the machine has no GPU.
    export CORTADO_REQUIRE_CUDA=1
    if [ -z "${CORTADO_CUBLAS:-}" ]; then
        CORTADO_CUBLAS=$(cublas_of_python || true)
        if [ -n "$CORTADO_CUBLAS" ]; then export CORTADO_CUBLAS; else unset CORTADO_CUBLAS; fi
    fi
    IFS=, read -r device driver < <(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader -i 0)
    driver=${driver# }
else
    device="simulated" driver="$CORTADO_LIBCUDA"
fi

kit() {
    local only=()
    [ -z "$brief" ] || only=(cuda::copy cuda::gemm steps::lenet)
    "$programs/kit" "${only[@]}" >"$work/kit" 2>&1
}

# Trains LeNet like the example, and fails if the accuracy is too low.
lenet() {
    local example=digits solver=$work/solver.prototxt net=$work/lenet.prototxt min_accuracy=0.97
    local mnist=${CORTADO_MNIST:-$folder/mnist}
    [ ! -d "$mnist" ] || { example=mnist min_accuracy=0.99; }
    sed "s|idx:examples/mnist/data|idx:$mnist|" "examples/$example/lenet.prototxt" >"$net"
    sed "s|^net: .*|net: \"$net\"|; s|^snapshot_prefix: .*|snapshot_prefix: \"$work/lenet\"|" \
        "examples/$example/solver.prototxt" >"$solver"
    if [ -n "$brief" ]; then
        min_accuracy=0
        sed -i 's/^max_iter: .*/max_iter: 1/; s/^test_iter: .*/test_iter: 1/' "$solver"
        sed -i 's/batch_size: .*/batch_size: 2 }/; s/count=[0-9]*/count=20/' "$net"
    fi
    local start=$SECONDS
    "$programs/cortado" train --solver "$solver" --gpu 0 >"$work/lenet.log" 2>&1 || return
    local accuracy
    accuracy=$(sed -n 's/.*accuracy = \([0-9.]*\).*/\1/p' "$work/lenet.log" | tail -n 1)
    echo "On $example: accuracy ${accuracy:-unknown} after $((SECONDS - start)) s." >"$work/lenet"
    awk -v got="${accuracy:-0}" -v min="$min_accuracy" 'BEGIN { exit !(got >= min) }'
}

bench() {
    local small=()
    [ -z "$brief" ] || small=(--test)
    "$programs/bench" "${small[@]}" >"$work/bench" 2>&1
}

# Times the nets of the benchmarks in PyTorch, with the same batch sizes.
torch() { [ -n "$brief" ] || python3 scripts/torch_steps.py "$work/bench" >"$work/torch" 2>&1; }

# Times the layers of the nets.
layers() {
    local net iterations=20 nets=(examples/imagenet/{alexnet,googlenet}.prototxt)
    [ -z "$brief" ] || nets=("$work/lenet.prototxt") iterations=1
    for net in "${nets[@]}"; do
        printf '\n### Layers of %s\n\n```\n' "$(basename "$net" .prototxt)"
        "$programs/cortado" time --model "$net" --gpu 0 --iterations "$iterations" 2>&1 || return
        printf '```\n'
    done >"$work/layers"
}

export -f kit lenet bench torch layers
export folder programs work brief
run_part "conformance kit" 210 bash -c kit
run_part "LeNet" 90 bash -c lenet
run_part "benchmarks" 150 bash -c bench
run_part "PyTorch" 75 bash -c torch
run_part "layers" 45 bash -c layers

date=$(date -u +%F)
report=${OUT:-docs/gpu}/$(tr -cs 'A-Za-z0-9\n' - <<<"$device" | sed 's/-$//' | tr A-Z a-z)-$date.md
{
    printf '# %s, %s\n\n' "$device" "$date"
    printf -- '- driver: %s\n- commit: %s\n' "$driver" "$(cat "$folder/commit")"
    printf -- '- cuBLAS: %s\n' "${CORTADO_CUBLAS:-found by the loader}"
    if [ ${#failed[@]} -gt 0 ]; then printf -- '- **failed**: %s\n' "${failed[@]}"; fi
    printf '\n## Conformance kit\n\n```\n'
    grep -E '^test .*FAILED|panicked at|^test result' "$work/kit" || tail -n 20 "$work/kit"
    printf '```\n\n## LeNet\n\n'
    cat "$work/lenet" 2>/dev/null || printf '```\n%s\n```\n' "$(tail -n 20 "$work/lenet.log")"
    printf '\n## Benchmarks\n\n'
    cat "$work/bench"
    printf '\n### Compared with PyTorch\n\n'
    cat "$work/torch" "$work/layers" 2>/dev/null || true
} >"$report"
echo "$report, after $SECONDS s"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}" >&2
    # The report has only excerpts of these files.
    [ -z "${OUT:-}" ] || cp "$work"/{kit,lenet.log,bench,torch} "$OUT" 2>/dev/null || true
    exit 1
fi
