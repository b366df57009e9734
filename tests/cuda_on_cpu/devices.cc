// CUDA driver functions for devices, contexts and the names of result codes.

#include <string.h>

#include "entry.h"
#include "execution.h"

using namespace cuda_on_cpu;

// Fails if the simulated driver cannot execute kernels. Only the first call of `cuInit` checks
// whether the simulated driver can execute kernels.
ENTRY cuInit(unsigned) {
    LOCK_DRIVER;
    static const bool works = can_execute();
    return works ? SUCCESS : NOT_INITIALIZED;
}

ENTRY cuDriverGetVersion(int *version) {
    *version = driver_version();
    return SUCCESS;
}

ENTRY cuDeviceGetCount(int *count) {
    *count = CARDS;
    return SUCCESS;
}

ENTRY cuDeviceGet(int *device, int number) {
    if (number < 0 || number >= CARDS) return INVALID_DEVICE;
    *device = number;
    return SUCCESS;
}

ENTRY cuDeviceGetName(char *name, int length, int) {
    strncpy(name, "CUDA on the CPU", length);
    return SUCCESS;
}

ENTRY cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = card(device).capacity;
    return SUCCESS;
}

ENTRY cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
        case 1: *value = 1024; break;        // threads per block
        case 8: *value = 48 << 10; break;    // shared memory per block
        case 10: *value = 32; break;         // lanes per warp
        case 16: *value = 2; break;          // multiprocessors
        case 75: *value = capability() / 10; break;  // compute capability, major
        case 76: *value = capability() % 10; break;  // compute capability, minor
        case 115:                            // memory pools supported
            if (driver_version() < 11020) return INVALID_VALUE;
            *value = has_memory_pools(device);
            break;
        default: return INVALID_VALUE;
    }
    return SUCCESS;
}

ENTRY cuDevicePrimaryCtxRetain(void **context, int device) {
    LOCK_DRIVER;
    if (card(device).failed) return card(device).failed;
    card(device).retained++;
    *context = &card(device);
    return SUCCESS;
}

// The last release of the primary context of a simulated GPU resets the GPU, but does not clear a
// failure. According to NVIDIA's documentation, a process cannot use CUDA again after such a
// failure.
ENTRY cuDevicePrimaryCtxRelease_v2(int device) {
    LOCK_DRIVER;
    Card &released = card(device);
    if (released.retained == 0) return INVALID_CONTEXT;
    if (--released.retained == 0) {
        released.drain();
        released.queues.clear();
        released.trim_freed(0);
    }
    return SUCCESS;
}

ENTRY cuCtxSetCurrent(void *context) {
    LOCK_DRIVER;
    auto *next = static_cast<Card *>(context);
    if (next && !next->retained) return INVALID_CONTEXT;
    current_card = next;
    return SUCCESS;
}

ENTRY cuCtxGetCurrent(void **context) {
    *context = current_card;
    return SUCCESS;
}

ENTRY cuCtxSynchronize() {
    REQUIRE_CARD;
    card.drain();
    return card.failed;
}

static const struct {
    int code;
    const char *name, *text;
} CODES[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

ENTRY cuGetErrorName(int code, const char **name) {
    for (const auto &known : CODES) {
        if (known.code == code) return *name = known.name, SUCCESS;
    }
    return INVALID_VALUE;
}

ENTRY cuGetErrorString(int code, const char **text) {
    for (const auto &known : CODES) {
        if (known.code == code) return *text = known.text, SUCCESS;
    }
    return INVALID_VALUE;
}
