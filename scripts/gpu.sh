#!/usr/bin/env bash
# All that a GPU is to show, in one call of ten minutes at most: the conformance kit, LeNet,
# and what copies, kernels, products and steps of training reach beside cuBLAS and PyTorch. It needs
# a driver, and Python with PyTorch, but no cargo: programs are built before.
#
#   scripts/gpu.sh build [FOLDER]   builds them into FOLDER, by default target/gpu
#   scripts/gpu.sh [FOLDER]         runs them, from the root of the repository
#
# The report goes to $OUT, or docs/gpu: DEVICE-DATE.md. It is whole even where something fails, and
# then this fails: nothing is skipped. LeNet learns MNIST to 0.99, from the folder $CORTADO_MNIST
# (when built, its files are taken along) or FOLDER/mnist; without either, the built-in digits to 0.97.
#
# With CORTADO_GPU_BRIEF=1, where CORTADO_LIBCUDA names the driver that tests stand in with (and
# CORTADO_CUBLAS its folder), all but PyTorch runs small: that it runs at all is seen without a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

build() {
    local folder=$1 features=cuda,conformance
    mkdir -p "$folder"
    # The program that cargo says it has built of a kind of target.
    built() {
        local kind=$1
        shift
        cargo "$@" --features "$features" --message-format json-render-diagnostics |
            sed -n "s/.*\"kind\":\[\"$kind\"\].*\"executable\":\"\([^\"]*\)\".*/\1/p"
    }
    # Packed: each has all kernels in it, as text.
    take() {
        strip -o "$folder/$2" "$1"
        gzip -9f "$folder/$2"
    }
    take "$(built bin build --release --bin cortado)" cortado
    take "$(built test test --release --no-run --test cuda)" kit
    take "$(built bench bench --no-run --bench gpu)" bench
    git rev-parse HEAD >"$folder/commit"
    if [ -n "${CORTADO_MNIST:-}" ]; then
        mkdir -p "$folder/mnist"
        cp "$CORTADO_MNIST"/{train,t10k}-{images-idx3,labels-idx1}-ubyte* "$folder/mnist"
    fi
    du -ab "$folder"
    if [ "$(du -sm "$folder" | cut -f 1)" -ge 60 ]; then
        echo "$folder is too large to be carried: 60 MiB are the most" >&2
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

# Runs a part for so many seconds at most, and notes what fails.
part() {
    local name=$1 seconds=$2 start=$SECONDS
    shift 2
    echo "== $name" >&2
    timeout --kill-after 5 "$seconds" "$@" || failed+=("$name (status $?, after $((SECONDS - start)) s)")
}

# The folder of the newest cuBLAS that came with Python's packages.
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
    # What is not there is a failure.
    export CORTADO_REQUIRE_CUDA=1
    if [ -z "${CORTADO_CUBLAS:-}" ]; then
        CORTADO_CUBLAS=$(cublas_of_python || true)
        if [ -n "$CORTADO_CUBLAS" ]; then export CORTADO_CUBLAS; else unset CORTADO_CUBLAS; fi
    fi
    IFS=, read -r device driver < <(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader -i 0)
    driver=${driver# }
else
    device="stand-in" driver="$CORTADO_LIBCUDA"
fi

kit() {
    local only=()
    [ -z "$brief" ] || only=(cuda::copy cuda::gemm steps::lenet)
    "$programs/kit" "${only[@]}" >"$work/kit" 2>&1
}

# Trains LeNet as the example does, and fails if it has not learnt enough.
lenet() {
    local example=digits solver=$work/solver.prototxt net=$work/lenet.prototxt least=0.97
    local mnist=${CORTADO_MNIST:-$folder/mnist}
    [ ! -d "$mnist" ] || { example=mnist least=0.99; }
    sed "s|idx:examples/mnist/data|idx:$mnist|" "examples/$example/lenet.prototxt" >"$net"
    sed "s|^net: .*|net: \"$net\"|; s|^snapshot_prefix: .*|snapshot_prefix: \"$work/lenet\"|" \
        "examples/$example/solver.prototxt" >"$solver"
    if [ -n "$brief" ]; then
        least=0
        sed -i 's/^max_iter: .*/max_iter: 1/; s/^test_iter: .*/test_iter: 1/' "$solver"
        sed -i 's/batch_size: .*/batch_size: 2 }/; s/count=[0-9]*/count=20/' "$net"
    fi
    local start=$SECONDS
    "$programs/cortado" train --solver "$solver" --gpu 0 >"$work/lenet.log" 2>&1 || return
    local accuracy
    accuracy=$(sed -n 's/.*accuracy = \([0-9.]*\).*/\1/p' "$work/lenet.log" | tail -n 1)
    echo "On $example: accuracy ${accuracy:-unknown} after $((SECONDS - start)) s." >"$work/lenet"
    awk -v got="${accuracy:-0}" -v least="$least" 'BEGIN { exit !(got >= least) }'
}

bench() {
    local small=()
    [ -z "$brief" ] || small=(--test)
    "$programs/bench" "${small[@]}" >"$work/bench" 2>&1
}

# The same nets, of the same batches, in PyTorch.
torch() { [ -n "$brief" ] || python3 scripts/torch_steps.py "$work/bench" >"$work/torch" 2>&1; }

# The layers of the nets.
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
part "the kit" 210 bash -c kit
part "LeNet" 90 bash -c lenet
part "benches" 150 bash -c bench
part "PyTorch" 75 bash -c torch
part "layers" 45 bash -c layers

date=$(date -u +%F)
report=${OUT:-docs/gpu}/$(tr -cs 'A-Za-z0-9\n' - <<<"$device" | sed 's/-$//' | tr A-Z a-z)-$date.md
{
    printf '# %s, %s\n\n' "$device" "$date"
    printf -- '- driver: %s\n- commit: %s\n' "$driver" "$(cat "$folder/commit")"
    printf -- '- cuBLAS: %s\n' "${CORTADO_CUBLAS:-where the loader finds it}"
    if [ ${#failed[@]} -gt 0 ]; then printf -- '- **failed**: %s\n' "${failed[@]}"; fi
    printf '\n## The kit\n\n```\n'
    grep -E '^test .*FAILED|panicked at|^test result' "$work/kit" || tail -n 20 "$work/kit"
    printf '```\n\n## LeNet\n\n'
    cat "$work/lenet" 2>/dev/null || printf '```\n%s\n```\n' "$(tail -n 20 "$work/lenet.log")"
    printf '\n## What it reaches\n\n'
    cat "$work/bench"
    printf '\n### Beside PyTorch\n\n'
    cat "$work/torch" "$work/layers" 2>/dev/null || true
} >"$report"
echo "$report, after $SECONDS s"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}" >&2
    # What a report does not have room for.
    [ -z "${OUT:-}" ] || cp "$work"/{kit,lenet.log,bench,torch} "$OUT" 2>/dev/null || true
    exit 1
fi
