#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef __x86_64__
#error "switching stacks is implemented for x86-64 only"
#endif

// Saves the callee-saved registers and the stack pointer, and switches to the stack `to`.
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

// The fiber that was resumed last, and the body of the fiber that was prepared last.
thread_local Fiber *last_resumed;
thread_local void (*fiber_body)();

}  // namespace

Fiber::Fiber()
    : own_sp(nullptr), caller_sp(nullptr), own_fake_stack(nullptr), caller_stack(nullptr),
      caller_stack_size(0) {
    void *pages = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) abort();
    stack = static_cast<char *>(pages);
}

Fiber::~Fiber() { munmap(stack, STACK); }

void Fiber::begin() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &last_resumed->caller_stack,
                                    &last_resumed->caller_stack_size);
#endif
    fiber_body();
    for (;;) last_resumed->pause();
}

void Fiber::prepare(void (*body)()) {
    fiber_body = body;
    // A new stack holds the values that `cuda_on_cpu_switch` restores: six registers and the return
    // address `begin`. The null pointer at the top takes the place of a return address, and aligns
    // the stack pointer as after a call instruction.
    void **top = reinterpret_cast<void **>(stack + STACK);
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(begin);
    for (int registers = 0; registers < 6; registers++) *--top = nullptr;
    own_sp = top;
}

void Fiber::resume() {
    last_resumed = this;
#ifdef __SANITIZE_ADDRESS__
    void *caller_fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&caller_fake_stack, stack, STACK);
#endif
    cuda_on_cpu_switch(&caller_sp, own_sp);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(caller_fake_stack, nullptr, nullptr);
#endif
}

void Fiber::pause() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&own_fake_stack, caller_stack, caller_stack_size);
#endif
    cuda_on_cpu_switch(&own_sp, caller_sp);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(own_fake_stack, &caller_stack, &caller_stack_size);
#endif
}

}  // namespace cuda_on_cpu
