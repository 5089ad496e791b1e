// Memory that starts at a cache line.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace ccq {

template <class T>
struct Free {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t(64)); }
};
template <class T>
using Aligned = std::unique_ptr<T[], Free<T>>;
template <class T>
Aligned<T> aligned(std::size_t n) {
    return Aligned<T>(static_cast<T*>(::operator new[](n * sizeof(T), std::align_val_t(64))));
}

}  // namespace ccq
