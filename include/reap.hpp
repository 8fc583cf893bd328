/* SPDX-License-Identifier: Apache-2.0 */
/* reap.hpp: reaps for C++17: memory resources for std::pmr, and objects with destructors.
 *
 *     reap::resource request(connection.handle());       // a child of another, or a root without
 *     std::pmr::vector<std::pmr::string> words(&request);
 *     auto *parser = reap::make<Parser>(request.handle(), text);  // ~Parser() when the reap ends
 *     char *line = reapPrintf(request.handle(), "%d", 7);         // all calls of reap.h serve
 *
 * A resource owns its reap and destroys it at the end of its scope, with what containers left there; a
 * resource_ref stands for a reap that is owned elsewhere. Threads: as in reap.h, one at a time in a reap and
 * the containers there, or any, if its options say REAP_SHARED. A container must end before its reap is
 * cleared or destroyed, or never be used again, its destructor included: what it frees then is misuse, and
 * ends the program with one line.
 *
 * Errors: exhaustion, a limit that is met included, throws std::bad_alloc and changes nothing; options that
 * reapCreateWith refuses throw std::system_error. Where exceptions are off both end the program.
 */
#ifndef REAP_HPP
#define REAP_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "reap.hpp needs C++17; reap.h serves older C++"
#endif

#include <cerrno>
#include <cstddef>
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

/* Code without exceptions or RTTI does other things in functions of the same names: apart for the linker. */
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

/* Says what errno says. */
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

/* reap_options with nothing chosen: what reapCreate does. */
struct options : reap_options {
    options() noexcept : reap_options() { size = sizeof(reap_options); }
};

/* A memory resource on a reap that is owned elsewhere, and must outlive it. */
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

    /* Resources on one reap are equal: containers swap and move memory between them. Without RTTI only a
     * resource and itself are known to be. */
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
 * resource's); destroyed with it, after the child resources and containers that the scope has in it. */
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

/* reapEnter for a scope, which exceptions leave too: under libreap-malloc what new and malloc give this
 * thread in it comes from the reap. Exceptions that pass through have their memory in there as well: who
 * catches one outside has to be done with it before the reap ends. */
class entered
{
public:
    explicit entered(void **reap) { reapEnter(reap); }
    entered(const entered &) = delete;
    entered &operator=(const entered &) = delete;
    ~entered() { reapLeave(); }
};

/* Ends one object before its reap does: destructor, then reapFree. */
template <class T> struct deleter {
    void *reap;
    void operator()(T *object) noexcept
    {
        object->~T();
        reapFree(&reap, object);
    }
};

/* Does not convert to that of a base, whose address need not be the object's. */
template <class T> using unique_ptr = std::unique_ptr<T, deleter<T>>;

/* An object in a reap that ends before it. When the constructor throws, its memory is free again. */
template <class T, class... Args> unique_ptr<T> make_unique(void **reap, Args &&...args)
{
    static_assert(std::is_object_v<T> && !std::is_array_v<T>, "of many objects std::pmr::vector is made");
    static_assert(!std::is_const_v<T>, "what makes it and ends it may not find it const");
    detail::unfinished unfinished{reap, detail::allocate(reap, sizeof(T), alignof(T))};
    T *object = ::new (unfinished.memory) T(std::forward<Args>(args)...);
    unfinished.memory = nullptr;
    return unique_ptr<T>(object, deleter<T>{*reap});
}

/* An object that ends with its reap (or a rewind past it): destructors run in the opposite order of
 * constructors, as in a scope. One that has a trivial destructor costs no more than reapMalloc. */
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
