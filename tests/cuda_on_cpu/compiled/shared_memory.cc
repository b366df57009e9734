#include "shared_memory.h"

#include <link.h>

#include "../card.h"
#include "../execution.h"
#include "../include/builtins.h"
#include "../include/registry.h"

namespace cuda_on_cpu {

namespace {

// The `thread_local` variables of this library, in the calling thread.
struct Variables {
    char *start;
    size_t bytes;
};

// Sets the `Variables` to which `data` points, if `library` contains the variable `current_card`.
int find_variables(dl_phdr_info *library, size_t, void *data) {
    const auto *own = reinterpret_cast<char *>(&current_card);
    auto *start = static_cast<char *>(library->dlpi_tls_data);
    for (int i = 0; start && i < library->dlpi_phnum; i++) {
        const auto &segment = library->dlpi_phdr[i];
        if (segment.p_type != PT_TLS || own < start || own >= start + segment.p_memsz) continue;
        *static_cast<Variables *>(data) = {start, segment.p_memsz};
        return 1;
    }
    return 0;
}

void read_before_writing(float *read) {
    __shared__ float unwritten[32];
    read[threadIdx.x] = unwritten[threadIdx.x];
    unwritten[threadIdx.x] = 1;
}

}  // namespace

void poison_shared_memory() {
    Variables variables = {};
    dl_iterate_phdr(find_variables, &variables);
    Card *kept = current_card;
    memset(variables.start, 0xff, variables.bytes);
    current_card = kept;
}

bool shared_memory_is_poisoned() {
    const Kernel kernel = {"read_before_writing", Call<read_before_writing>::call, {sizeof(float *)}};
    for (int i = 0; i < 2; i++) {
        float read[32] = {};
        const auto address = bits_of<uint64_t>(&read[0]);
        std::vector<char> argument(sizeof address);
        memcpy(argument.data(), &address, sizeof address);
        Launch launch = {&kernel, 0, {1, 1, 1}, {32, 1, 1}, {argument}};
        if (!run(launch).empty()) return false;
        for (const float value : read) {
            if (value == value) return false;
        }
    }
    return true;
}

}  // namespace cuda_on_cpu
