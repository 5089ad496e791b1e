// A few threads that wait for work. Made when first needed, made anew after a fork.
#pragma once
#include <cstddef>
#include <functional>

namespace ccq {

// Run task(0) .. task(n - 1), the first on the calling thread, and return when all are done. The first exception is thrown
// on. May be called from several threads at once.
void run_parallel(std::size_t n, const std::function<void(std::size_t)>& task);

}  // namespace ccq
