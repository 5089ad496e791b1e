// Threads that wait for work: as many as one call ever wanted beside its own. Made when first needed, made anew after a fork.
#pragma once
#include <cstddef>
#include <functional>

namespace ccq {

// Run task(0) .. task(n - 1), and return when all are done. The calling thread takes one after the other, and so do those
// threads that have nothing else to do: a call that finds all of them busy does its work alone, and calls at the same time do
// not get in each other's way. The first exception is thrown on. May be called from several threads at once.
void run_parallel(std::size_t n, const std::function<void(std::size_t)>& task);

}  // namespace ccq
