/* Counts the calls that allocate memory, and the bytes asked for. Preloaded by scripts/count_allocations.py.

   With PYTHONMALLOC=malloc each object of Python that does not come from a free list is among them. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static unsigned long long calls, bytes;

static void note(size_t asked) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&bytes, asked, __ATOMIC_RELAXED);
}

void *malloc(size_t asked) {
    note(asked);
    return __libc_malloc(asked);
}

void *calloc(size_t count, size_t each) {
    note(count * each);
    return __libc_calloc(count, each);
}

void *realloc(void *old, size_t asked) {
    note(asked);
    return __libc_realloc(old, asked);
}

__attribute__((destructor)) static void tell(void) {
    const char *name = getenv("ALLOCATIONS_FILE");
    FILE *file = name ? fopen(name, "w") : NULL;
    if (file) {
        fprintf(file, "%llu %llu\n", calls, bytes);
        fclose(file);
    }
}
