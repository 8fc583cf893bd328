/* SPDX-License-Identifier: Apache-2.0 */
/* reap.hpp: reaps for C++17: memory resources for std::pmr, and objects with destructors.
 *
 *     reap::resource request(connection.handle());       // a child of another, or a root without
 *     std::pmr::vector<std::pmr::string> words(&request);
 *     auto *parser = reap::make<Parser>(request.handle(), text);  // ~Parser() when the reap ends
 *     char *line = reapPrintf(request.handle(), "%d", 7);         // all calls of reap.h serve
 *
 * A resource owns its reap and destroys it at the end of its scope, with all memory that containers left
 * there. A resource_ref stands for a reap that another object owns. Threads: one thread at a time uses a reap
 * and its containers, as in reap.h; with REAP_SHARED in its options any thread may use the resource. A
 * container must end before its reap is cleared or destroyed. Otherwise the program must not use it again,
 * nor run its destructor: such a late free is misuse, and ends the program with one line.
 *
 * Errors: when there is no memory, or a limit is met, a call throws std::bad_alloc and changes nothing.
 * Options that reapCreateWith refuses throw std::system_error. Without exceptions both end the program.
 */
#ifndef REAP_HPP
#define REAP_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "reap.hpp needs C++17; reap.h serves older C++"
#endif

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <memory_resource>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "reap.h"

namespace reap {

/* Functions of the same names differ in code without exceptions or RTTI: a namespace keeps them apart for the
 * linker. */
#if defined(__cpp_exceptions) && defined(__cpp_rtti)
inline namespace full {
#elif defined(__cpp_exceptions)
inline namespace no_rtti {
#elif defined(__cpp_rtti)
inline namespace no_exceptions {
#else
inline namespace no_exceptions_no_rtti {
#endif

namespace detail {

/* Reports errno, by an exception if there are any. */
[[noreturn]] inline void fail()
{
#if defined(__cpp_exceptions)
    if (errno == ENOMEM) throw std::bad_alloc();
    throw std::system_error(errno, std::generic_category(), "reap");
#else
    std::perror("reap");
    std::abort();
#endif
}

inline void *allocate(void **reap, std::size_t size, std::size_t alignment)
{
    void *object = alignment <= 16 ? reapMalloc(reap, size) : reapAlignedAlloc(reap, alignment, size);
    if (!object) fail();
    return object;
}

/* The memory of an object whose constructor has not returned. */
struct unfinished {
    void **reap;
    void *memory;
    ~unfinished() { reapFree(reap, memory); }
};

template <class T> void destruct(void *object) noexcept { static_cast<T *>(object)->~T(); }

} // namespace detail

/* reap_options with the defaults of reapCreate. */
struct options : reap_options {
    options() noexcept : reap_options() { size = sizeof(reap_options); }
};

/* A memory resource on a reap that another object owns, and that must outlive the resource. */
class resource_ref : public std::pmr::memory_resource
{
public:
    explicit resource_ref(void **reap) noexcept : reap_(*reap) {}

    /* For the calls of reap.h. */
    void **handle() noexcept { return &reap_; }

protected:
    resource_ref() noexcept = default;

private:
    void *do_allocate(std::size_t size, std::size_t alignment) final
    {
        return detail::allocate(&reap_, size, alignment);
    }

    void do_deallocate(void *object, std::size_t, std::size_t) noexcept final { reapFree(&reap_, object); }

    /* Resources on one reap are equal: containers swap and move memory between them. Without RTTI a resource
     * is known to be equal only to itself. */
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept final
    {
#if defined(__cpp_rtti)
        auto *same = dynamic_cast<const resource_ref *>(&other);
        return same && same->reap_ == reap_;
#else
        return this == &other;
#endif
    }

    void *reap_ = nullptr;
};

/* A memory resource with a reap of its own: a root, or the child of a parent's handle (which may be another
 * resource's). It destroys the reap, after the scope's child resources and containers have ended. */
class resource : public resource_ref
{
public:
    explicit resource(void **parent = nullptr) : resource(parent, options()) {}
    explicit resource(const reap_options &options) : resource(nullptr, options) {}
    resource(void **parent, const reap_options &options)
    {
        if (reapCreateWith(handle(), parent, &options) != 0) detail::fail();
    }
    resource(const resource &) = delete;
    resource &operator=(const resource &) = delete;
    ~resource() override { reapDestroy(handle()); }

    /* Clears the reap: children, functions, objects; the reap stays. */
    void release() noexcept { reapFreeAll(handle()); }
};

/* reapEnter for a scope, also if an exception leaves it. Under libreap-malloc this thread's new and malloc
 * come from the reap there. So does the memory of exceptions that are thrown inside: a handler outside must
 * end before the reap does. NULL is the heap. */
class entered
{
public:
    explicit entered(void **reap) { reapEnter(reap); }
    entered(const entered &) = delete;
    entered &operator=(const entered &) = delete;
    ~entered() { reapLeave(); }
};

/* reapEnterQuietly for a scope: for reap::allocator and callers of reapEntered, on any malloc. */
class scope
{
public:
    explicit scope(void **reap) { reapEnterQuietly(reap); }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    ~scope() { reapLeave(); }
};

/* reapChargeAs for a scope: this thread works for the reap, whose name and label samples of its malloc carry.
 * NULL: for no reap. */
class charged
{
public:
    explicit charged(void **reap, const char *label = "")
    {
        if (reapChargeAs(reap, label) != 0) detail::fail();
    }
    charged(const charged &) = delete;
    charged &operator=(const charged &) = delete;
    ~charged() { reapUncharge(); }
};

/* An allocator without state. Memory comes from the reap that this thread has entered (entered, scope), or
 * from new if it has entered none, and goes back to where it came from, in any thread. So containers of one
 * type live in a reap and outside. All allocators are equal: containers move and swap without copying, and
 * keep the memory that they have. A container must end before the reap of its memory does, or never be used
 * again. */
template <class T> class allocator
{
public:
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    constexpr allocator() noexcept = default;
    template <class U> constexpr allocator(const allocator<U> &) noexcept {}

    [[nodiscard]] T *allocate(std::size_t n)
    {
        void *reap = reapEntered();
        if (!reap) return std::allocator<T>().allocate(n);
        std::size_t size = n <= PTRDIFF_MAX / sizeof(T) ? n * sizeof(T) : SIZE_MAX;
        return static_cast<T *>(detail::allocate(&reap, size, alignof(T)));
    }

    void deallocate(T *objects, std::size_t n) noexcept
    {
        int saved = errno;
        if (reapFreeAny(objects) != 0) std::allocator<T>().deallocate(objects, n);
        errno = saved;
    }
};

template <class T, class U> constexpr bool operator==(const allocator<T> &, const allocator<U> &) noexcept
{
    return true;
}

template <class T, class U> constexpr bool operator!=(const allocator<T> &, const allocator<U> &) noexcept
{
    return false;
}

/* Ends one object before its reap does: destructor, then reapFree. */
template <class T> struct deleter {
    void *reap;
    void operator()(T *object) noexcept
    {
        object->~T();
        reapFree(&reap, object);
    }
};

/* Does not convert to a pointer to a base class, which may have another address. */
template <class T> using unique_ptr = std::unique_ptr<T, deleter<T>>;

/* An object that ends before its reap. If the constructor throws, the call frees the memory. */
template <class T, class... Args> unique_ptr<T> make_unique(void **reap, Args &&...args)
{
    static_assert(std::is_object_v<T> && !std::is_array_v<T>, "of many objects std::pmr::vector is made");
    static_assert(!std::is_const_v<T>, "what makes it and ends it may not find it const");
    detail::unfinished unfinished{reap, detail::allocate(reap, sizeof(T), alignof(T))};
    T *object = ::new (unfinished.memory) T(std::forward<Args>(args)...);
    unfinished.memory = nullptr;
    return unique_ptr<T>(object, deleter<T>{*reap});
}

/* An object that ends with its reap, or with a rewind past it. Destructors run in the opposite order of
 * constructors, as in a scope. An object with a trivial destructor costs no more than reapMalloc. */
template <class T, class... Args> T *make(void **reap, Args &&...args)
{
    auto object = reap::make_unique<T>(reap, std::forward<Args>(args)...);
    if constexpr (!std::is_trivially_destructible_v<T>)
        if (reapOnDestroy(reap, detail::destruct<T>, object.get()) != 0) detail::fail();
    return object.release();
}

} // the inline namespace
} // namespace reap

#endif
