// Execution of kernels by the PTX machine in `tests/ptx_machine`.

#include <map>

#include "../execution.h"

// Functions of the PTX machine, which `tests/ptx_machine/src/interface.rs` describes.
extern "C" {
const void *ptx_machine_kernel(const char *ptx, const char *name);
size_t ptx_machine_parameters(const void *kernel, size_t *bytes, size_t capacity);
bool ptx_machine_launch(const void *kernel, int card, const unsigned *blocks,
                        const unsigned *threads, const void *const *arguments, char *error,
                        size_t error_bytes);
void ptx_machine_memory_added(uint64_t start, size_t bytes, int card);
void ptx_machine_memory_removed(uint64_t start);
void ptx_machine_memory_written(uint64_t start, size_t bytes);
void ptx_machine_memory_copied(uint64_t to, uint64_t from, size_t bytes);
}

namespace cuda_on_cpu {

struct Kernel {
    const void *handle;
    std::vector<size_t> arguments;
};

bool can_execute() { return true; }

const Kernel *find_kernel(const std::string &ptx, const std::string &name) {
    static std::map<const void *, Kernel> kernels;
    const void *handle = ptx_machine_kernel(ptx.c_str(), name.c_str());
    if (!handle) return nullptr;
    const auto known = kernels.find(handle);
    if (known != kernels.end()) return &known->second;
    std::vector<size_t> arguments(ptx_machine_parameters(handle, nullptr, 0));
    ptx_machine_parameters(handle, arguments.data(), arguments.size());
    return &kernels.emplace(handle, Kernel{handle, arguments}).first->second;
}

std::vector<size_t> argument_sizes(const Kernel &kernel) { return kernel.arguments; }

std::string run(Launch &launch) {
    const unsigned blocks[3] = {launch.blocks.x, launch.blocks.y, launch.blocks.z};
    const unsigned threads[3] = {launch.threads.x, launch.threads.y, launch.threads.z};
    std::vector<const void *> arguments;
    for (const auto &argument : launch.arguments) arguments.push_back(argument.data());
    char error[2000];
    const bool works = ptx_machine_launch(launch.kernel->handle, launch.card, blocks, threads,
                                          arguments.data(), error, sizeof error);
    return works ? "" : error;
}

void memory_added(uint64_t start, size_t bytes, int card) {
    ptx_machine_memory_added(start, bytes, card);
}
void memory_removed(uint64_t start) { ptx_machine_memory_removed(start); }
void memory_written(uint64_t start, size_t bytes) { ptx_machine_memory_written(start, bytes); }
void memory_copied(uint64_t to, uint64_t from, size_t bytes) {
    ptx_machine_memory_copied(to, from, bytes);
}

}  // namespace cuda_on_cpu
