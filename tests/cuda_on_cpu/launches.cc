// Driver functions that load modules and launch kernels.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entry.h"
#include "launches.h"

using namespace cuda_on_cpu;

namespace {

// Loaded module. A lookup in a module finds only the kernels whose names occur in the module's PTX.
struct Module {
    std::string ptx;
    Card *card;
    std::map<std::string, Function> functions;
};

// Returns the PTX version of a module, 10 · major + minor, or 0 if the PTX states none.
int ptx_version(const std::string &ptx) {
    int major = 0, minor = 0;
    const size_t at = ptx.find(".version ");
    if (at != ptx.npos) sscanf(ptx.c_str() + at, ".version %d.%d", &major, &minor);
    return 10 * major + minor;
}

// Returns the compute capability that a module needs, 10 · major + minor, or 0 if the PTX states
// none.
int ptx_target(const std::string &ptx) {
    int target = 0;
    const size_t at = ptx.find(".target ");
    if (at != ptx.npos) sscanf(ptx.c_str() + at, ".target sm_%d", &target);
    return target;
}

}  // namespace

namespace cuda_on_cpu {

Code prepare(Card &card, const Function *function, Index blocks, Index threads, unsigned shared,
             void **arguments, void **extra, PreparedLaunch *prepared) {
    if (function->card != &card) return INVALID_HANDLE;
    const uint64_t thread_count = uint64_t(threads.x) * threads.y * threads.z;
    const uint64_t block_count = uint64_t(blocks.x) * blocks.y * blocks.z;
    if (thread_count == 0 || thread_count > 1024 || threads.z > 64) return INVALID_VALUE;
    if (block_count == 0 || blocks.x > 0x7fffffff || blocks.y > 65535 || blocks.z > 65535) {
        return INVALID_VALUE;
    }
    // No kernel uses dynamic shared memory.
    if (shared > 0 || extra) return INVALID_VALUE;
    *prepared = {function->name, &card, {function->kernel, card.number, blocks, threads, {}}};
    for (const size_t bytes : argument_sizes(*function->kernel)) {
        const auto *first = static_cast<const char *>(*arguments++);
        prepared->launch.arguments.emplace_back(first, first + bytes);
    }
    return SUCCESS;
}

Code PreparedLaunch::execute() {
    if (card->failed) return card->failed;
    if (kernel_fails(*card, name)) return ILLEGAL_ADDRESS;
    const std::string error = run(launch);
    if (error.empty()) return SUCCESS;
    fprintf(stderr, "CUDA on the CPU: %s: %s\n", name.c_str(), error.c_str());
    return LAUNCH_FAILED;
}

}  // namespace cuda_on_cpu

// The driver of CUDA 11.x accepts PTX up to version 7.x. For x ≤ 5, the driver of CUDA 12.x accepts
// PTX up to version 8.x.
ENTRY cuModuleLoadDataEx(void **module, const void *image, unsigned, void *, void *) {
    REQUIRE_CARD;
    const std::string ptx = static_cast<const char *>(image);
    const int target = ptx_target(ptx);
    if (target == 0 || target > capability()) return INVALID_PTX;
    if (ptx_version(ptx) > driver_version() / 100 - 40 + driver_version() / 10 % 10) {
        return UNSUPPORTED_PTX_VERSION;
    }
    // For tests: rejects a module that is already loaded.
    if (getenv("CUDA_ON_CPU_LOAD_ONCE") && card.modules.count(ptx)) return INVALID_VALUE;
    card.modules.insert(ptx);
    *module = new Module{ptx, &card, {}};
    return SUCCESS;
}

ENTRY cuModuleUnload(void *module) {
    REQUIRE_CARD;
    const auto *unloaded = static_cast<Module *>(module);
    auto &modules = unloaded->card->modules;
    modules.erase(modules.find(unloaded->ptx));
    delete unloaded;
    return SUCCESS;
}

ENTRY cuModuleGetFunction(void **function, void *from, const char *name) {
    REQUIRE_CARD;
    auto *module = static_cast<Module *>(from);
    if (module->card != &card) return INVALID_HANDLE;
    if (module->ptx.find(std::string(".entry ") + name + "(") == std::string::npos) return NOT_FOUND;
    const Kernel *kernel = find_kernel(module->ptx, name);
    if (!kernel) return NOT_FOUND;
    Function found = {name, kernel, &card};
    *function = &module->functions.emplace(name, found).first->second;
    return SUCCESS;
}

ENTRY cuLaunchKernel(void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                     void *stream, void **arguments, void **extra) {
    REQUIRE_CARD;
    auto *queue = static_cast<Queue *>(stream);
    if (queue->card != &card) return INVALID_HANDLE;
    PreparedLaunch prepared;
    const Code code =
        prepare(card, static_cast<Function *>(handle), {grid_x, grid_y, grid_z},
                {block_x, block_y, block_z}, shared, arguments, extra, &prepared);
    if (code) return code;
    queue->add([prepared]() mutable { return prepared.execute(); });
    return SUCCESS;
}
