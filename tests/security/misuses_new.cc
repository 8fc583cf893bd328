/* SPDX-License-Identifier: Apache-2.0 */
/* misuses.c's part in C++: new and delete that do not match. `misuses_new list`, `misuses_new KIND SIZE`. */
#include <initializer_list>
#include <new>

#include "security/misuses.h"

namespace
{

enum { SMALL = 64, MEDIUM = 8192, LARGE = 1 << 20, BLOCKS = 3000 };

/* Takes blocks as new does, of all sizes that a wrong delete may have named, and looks whether two share
 * bytes. */
void look_around(size_t size, piece live)
{
    static piece blocks[BLOCKS];
    for (size_t wanted : {size, size / 2, size * 4, size}) {
        size_t n = size == SMALL ? 3000 : size == MEDIUM ? 300 : 20;
        for (size_t i = 0; i < n; i++) blocks[i] = piece_of(::operator new(OPAQUE(wanted)), wanted);
        for (size_t i = 0; i < n; i++)
            if (!piece_is_whole(blocks[i])) missed("two live blocks share bytes");
        if (!piece_is_whole(live)) missed("somebody's live bytes were given away");
        for (size_t i = 0; i < n; i++) ::operator delete(OPAQUE(blocks[i].start));
    }
    if (!piece_is_whole(live)) missed("somebody's live bytes were changed");
}

struct counted { /* with a destructor, so that new[] stores a count before the first */
    unsigned char bytes[16];
    ~counted() { OPAQUE(this); }
};

enum what {
    NEW_FREE,
    MALLOC_DELETE,
    ARRAY_DELETE,
    NEW_ARRAY,
    SIZE_HALF,
    SIZE_TWICE,
    SIZE_FOUR,
    SIZE_ZERO,
    SIZE_HUGE,
    ALIGNED_PLAIN,
    PLAIN_ALIGNED,
    ALIGNED_FREE,
    WRONG_ALIGNMENT,
    TWICE,
    TWICE_BY_FREE,
    COUNT_SKIPPED,
    COUNT_ADDED,
    STACK,
    REALLOC
};

void mismatch(size_t size, what how)
{
    const std::align_val_t line = std::align_val_t(64), page = std::align_val_t(4096);
    unsigned char local[64];
    piece live = piece_of(::operator new(OPAQUE(size)), size);
    void *block = how == MALLOC_DELETE || how == PLAIN_ALIGNED  ? malloc(OPAQUE(size))
                  : how == ARRAY_DELETE                         ? ::operator new[](OPAQUE(size))
                  : how == ALIGNED_PLAIN || how == ALIGNED_FREE ? ::operator new(OPAQUE(size), page)
                  : how == WRONG_ALIGNMENT                      ? ::operator new(OPAQUE(size), page)
                  : how == COUNT_SKIPPED                        ? (void *)new counted[OPAQUE(size) / 16]
                                                                : ::operator new(OPAQUE(size));
    memset(OPAQUE(block), 1, size);
    block = OPAQUE(block);
    void *again = OPAQUE(block);
    switch (how) {
    case NEW_FREE:
    case ALIGNED_FREE: free(block); break;
    case MALLOC_DELETE:
    case ARRAY_DELETE:
    case ALIGNED_PLAIN: ::operator delete(block); break;
    case NEW_ARRAY: ::operator delete[](block); break;
    case SIZE_HALF: ::operator delete(block, OPAQUE(size / 2)); break;
    case SIZE_TWICE: ::operator delete(block, OPAQUE(size * 2)); break;
    case SIZE_FOUR: ::operator delete(block, OPAQUE(size * 4)); break;
    case SIZE_ZERO: ::operator delete(block, OPAQUE((size_t)0)); break;
    case SIZE_HUGE: ::operator delete(block, OPAQUE(SIZE_MAX / 2)); break;
    case PLAIN_ALIGNED: ::operator delete(block, page); break;
    case WRONG_ALIGNMENT: ::operator delete(block, line); break;
    case TWICE:
        ::operator delete(block);
        ::operator delete(again);
        break;
    case TWICE_BY_FREE:
        ::operator delete(block);
        free(again);
        break;
    case COUNT_SKIPPED: ::operator delete(block); break; /* 8 bytes inside: delete in the place of delete[] */
    case COUNT_ADDED: ::operator delete((char *)block - 8); break; /* delete[] in the place of delete */
    case STACK: ::operator delete(OPAQUE((void *)local)); break;
    case REALLOC: free(realloc(block, size * 2)); break;
    }
    look_around(size, live);
    harmless("no live bytes were given away");
}

void impossible(size_t, what how)
{
    void *got = nullptr;
    try {
        size_t n = how == SIZE_HUGE ? SIZE_MAX - 8 : SIZE_MAX / 16 + 2;
        got = how == SIZE_HUGE ? ::operator new(OPAQUE(n)) : (void *)new counted[OPAQUE(n)];
        got = OPAQUE(got); /* else the compiler takes new away, and does not ask whether it succeeded */
    } catch (const std::bad_alloc &) {
        harmless("refused by bad_alloc");
    }
    missed(got ? "it was granted" : "no memory, and no exception");
}

const struct {
    const char *name, *what;
    void (*run)(size_t size, enum what how);
    enum what how;
    bool sized;
} kinds[] = {
    {"", "new and delete", nullptr, NEW_FREE, false},
    {"new-free", "new, free", mismatch, NEW_FREE, true},
    {"new-realloc", "new, realloc", mismatch, REALLOC, true},
    {"malloc-delete", "malloc, delete", mismatch, MALLOC_DELETE, true},
    {"array-delete", "new[], delete of the block", mismatch, ARRAY_DELETE, true},
    {"new-delete-array", "new, delete[] of the block", mismatch, NEW_ARRAY, true},
    {"count-skipped", "new[] with a count, delete (8 bytes inside)", mismatch, COUNT_SKIPPED, true},
    {"count-added", "new, delete[] with a count (8 bytes before)", mismatch, COUNT_ADDED, true},
    {"sized-half", "delete with half of the size", mismatch, SIZE_HALF, true},
    {"sized-twice", "delete with twice the size", mismatch, SIZE_TWICE, true},
    {"sized-four", "delete with four times the size", mismatch, SIZE_FOUR, true},
    {"sized-zero", "delete with size 0", mismatch, SIZE_ZERO, true},
    {"sized-huge", "delete with a size that cannot be", mismatch, SIZE_HUGE, true},
    {"aligned-plain", "new aligned to a page, plain delete", mismatch, ALIGNED_PLAIN, true},
    {"aligned-free", "new aligned to a page, free", mismatch, ALIGNED_FREE, true},
    {"plain-aligned", "malloc, delete aligned to a page", mismatch, PLAIN_ALIGNED, true},
    {"aligned-other", "new aligned to a page, delete to a line", mismatch, WRONG_ALIGNMENT, true},
    {"delete-twice", "deleted twice", mismatch, TWICE, true},
    {"delete-free", "deleted, then freed", mismatch, TWICE_BY_FREE, true},
    {"delete-stack", "delete of the stack", mismatch, STACK, true},
    {"new-huge", "new, almost all bits", impossible, SIZE_HUGE, false},
    {"new-array-huge", "new[], a product that wraps", impossible, SIZE_HALF, false},
};

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (const auto &kind : kinds) printf("%s|%s|%d\n", kind.name, kind.what, kind.sized);
        return 0;
    }
    if (argc != 3) return 2;
    size_t size = strcmp(argv[2], "medium") == 0 ? MEDIUM : strcmp(argv[2], "large") == 0 ? LARGE : SMALL;
    ::operator delete(::operator new(OPAQUE(size)));
    if (strcmp(argv[1], "none") == 0) harmless("nothing was done");
    for (const auto &kind : kinds)
        if (kind.run && strcmp(argv[1], kind.name) == 0) kind.run(size, kind.how);
    return 2;
}
