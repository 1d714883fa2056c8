/* An allocator that only hands on to glibc's, with one setting. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), __libc_free(void *);

void *malloc(size_t size) { return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
void free(void *block) { __libc_free(block); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

int stuballoc_cache(void) {
    const char *value = getenv("STUBALLOC_CACHE");
    return value ? atoi(value) : 0;
}
