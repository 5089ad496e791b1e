// Which kernels this CPU can run.
#pragma once
#include <vector>

#include "kernels.hpp"

namespace ccq {

// Best first; the last is the portable one. Found out once.
const std::vector<const Kernels*>& available_kernels();

}  // namespace ccq
