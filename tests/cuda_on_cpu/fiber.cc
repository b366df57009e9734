#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "stacks are switched by instructions of x86-64"
#endif

// Keeps what a function has to keep, and goes on where `to` has left off.
extern "C" void cuda_on_cpu_switch(void **from, void *to);
asm(R"(
    .text
    .globl cuda_on_cpu_switch
    .hidden cuda_on_cpu_switch
    .type cuda_on_cpu_switch, @function
cuda_on_cpu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size cuda_on_cpu_switch, . - cuda_on_cpu_switch
)");

namespace cuda_on_cpu {

constexpr size_t STACK = 128 << 10;

namespace {

// The fiber that was resumed last, and what it is to run.
thread_local Fiber *resumed;
thread_local void (*first)();

}  // namespace

Fiber::Fiber() : own(nullptr), other(nullptr), fake(nullptr), bottom(nullptr), size(0) {
    void *pages = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) abort();
    stack = static_cast<char *>(pages);
}

Fiber::~Fiber() { munmap(stack, STACK); }

void Fiber::begin() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &resumed->bottom, &resumed->size);
#endif
    first();
    for (;;) resumed->pause();
}

void Fiber::prepare(void (*body)()) {
    first = body;
    // As `cuda_on_cpu_switch` leaves a stack: six registers, then where to return to, which finds
    // the stack as after a call.
    void **top = reinterpret_cast<void **>(stack + STACK);
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(begin);
    for (int registers = 0; registers < 6; registers++) *--top = nullptr;
    own = top;
}

void Fiber::resume() {
    resumed = this;
#ifdef __SANITIZE_ADDRESS__
    void *keep = nullptr;
    __sanitizer_start_switch_fiber(&keep, stack, STACK);
#endif
    cuda_on_cpu_switch(&other, own);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(keep, nullptr, nullptr);
#endif
}

void Fiber::pause() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&fake, bottom, size);
#endif
    cuda_on_cpu_switch(&own, other);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
#endif
}

}  // namespace cuda_on_cpu
