// Registry of kernels by name. `tests/cuda_on_cpu/mod.rs` generates one registration per kernel.
#pragma once

#include <stddef.h>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cuda_on_cpu {

struct Kernel {
    std::string name;
    // Function that runs the kernel for one thread of a block.
    void (*call)(void **arguments);
    // Sizes of the kernel's arguments in bytes.
    std::vector<size_t> arguments;
};

inline std::map<std::string, Kernel> &kernels() {
    static std::map<std::string, Kernel> all;
    return all;
}

template <auto function> struct Call;

template <class... A, void (*function)(A...)> struct Call<function> {
    static void call(void **arguments) { call(arguments, std::index_sequence_for<A...>()); }
    template <size_t... I> static void call(void **arguments, std::index_sequence<I...>) {
        function(*static_cast<std::remove_cv_t<A> *>(arguments[I])...);
    }
    static std::vector<size_t> sizes() { return {sizeof(A)...}; }
};

template <auto function> struct Registration {
    Registration(const char *name) {
        kernels()[name] = {name, Call<function>::call, Call<function>::sizes()};
    }
};

}  // namespace cuda_on_cpu
