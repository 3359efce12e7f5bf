/* Counts what memcpy and memmove copy, by the library that calls them. Preloaded by scripts/count_copies.py.

   Copies that the kernel makes (sockets, files), and those of realloc inside libc, pass by unseen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PLACES 4096 /* A power of two, many more than there are places that copy much. */

struct place {
    uintptr_t caller;
    size_t bytes;
};

static struct place places[PLACES];
static size_t least = SIZE_MAX; /* Nothing is counted before copies_reset. */

static void note(uintptr_t caller, size_t bytes) {
    for (size_t n = 0, at = caller * 0x9E3779B97F4A7C15u >> 52; n < PLACES; n++, at = (at + 1) % PLACES) {
        uintptr_t found = __atomic_load_n(&places[at].caller, __ATOMIC_RELAXED);
        if (found == 0) {
            uintptr_t empty = 0;
            if (__atomic_compare_exchange_n(&places[at].caller, &empty, caller, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                found = caller;
            else
                found = empty; /* Another thread was faster. */
        }
        if (found == caller) {
            __atomic_fetch_add(&places[at].bytes, bytes, __ATOMIC_RELAXED);
            return;
        }
    }
}

/* Byte by byte: slow, which harms no count. The flags that it is compiled with keep the compiler from calling memcpy for it. */
static void copy_up(char *to, const char *from, size_t bytes) {
    while (bytes--) *to++ = *from++;
}

static void copy_down(char *to, const char *from, size_t bytes) {
    while (bytes--) to[bytes] = from[bytes];
}

void *memcpy(void *to, const void *from, size_t bytes) {
    if (bytes >= least) note((uintptr_t)__builtin_return_address(0), bytes);
    copy_up(to, from, bytes);
    return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
    if (bytes >= least && to != from) note((uintptr_t)__builtin_return_address(0), bytes);
    if ((uintptr_t)to - (uintptr_t)from >= bytes) copy_up(to, from, bytes);
    else copy_down(to, from, bytes);
    return to;
}

void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t room) {
    (void)room;
    if (bytes >= least) note((uintptr_t)__builtin_return_address(0), bytes);
    copy_up(to, from, bytes);
    return to;
}

/* Forgets what was counted; from now on copies of so many bytes count. */
void copies_reset(size_t from_bytes) {
    for (size_t at = 0; at < PLACES; at++) __atomic_store_n(&places[at].bytes, 0, __ATOMIC_RELAXED);
    least = from_bytes;
}

/* Fills in the library and the bytes of the place at a number; returns 0 beyond the last. */
int copies_place(size_t at, const char **library, const char **function, size_t *bytes) {
    if (at >= PLACES) return 0;
    *bytes = __atomic_load_n(&places[at].bytes, __ATOMIC_RELAXED);
    *library = *function = "";
    Dl_info info;
    if (*bytes && dladdr((void *)places[at].caller, &info)) {
        *library = info.dli_fname ? info.dli_fname : "";
        *function = info.dli_sname ? info.dli_sname : "";
    }
    return 1;
}
