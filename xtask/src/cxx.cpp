// The parts of a C++ library that the C++ code of openh264 needs: memory allocation, and static
// variables in functions.
//
// Debian has a C library for musl but no C++ library. Its libstdc++ is built for glibc and is not
// compatible with musl. openh264 uses neither exceptions, nor type information, nor the standard
// library, so this suffices. `new` aborts the process when memory is exhausted, as Rust does.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

[[noreturn]] static void end(const char* why) {
    fprintf(stderr, "%s\n", why);
    abort();
}

void* operator new(size_t bytes) {
    void* memory = malloc(bytes ? bytes : 1);
    if (!memory) end("out of memory");
    return memory;
}

void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }

extern "C" void __cxa_pure_virtual() { end("a pure virtual function was called"); }

// Guards of static variables. The first byte says that the variable is initialized, which compiled
// code checks first. The second says that a thread is initializing it.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t made = PTHREAD_COND_INITIALIZER;

extern "C" int __cxa_guard_acquire(char* guard) {
    pthread_mutex_lock(&lock);
    while (guard[1]) pthread_cond_wait(&made, &lock);
    const bool ours = !guard[0];
    guard[1] = ours;
    pthread_mutex_unlock(&lock);
    return ours;
}

extern "C" void __cxa_guard_release(char* guard) {
    pthread_mutex_lock(&lock);
    __atomic_store_n(guard, 1, __ATOMIC_RELEASE);
    guard[1] = 0;
    pthread_cond_broadcast(&made);
    pthread_mutex_unlock(&lock);
}
