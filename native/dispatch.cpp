#include "dispatch.hpp"

namespace ccq {

const std::vector<const Kernels*>& available_kernels() {
    static const std::vector<const Kernels*> found = [] {
        std::vector<const Kernels*> list;
#if defined(__x86_64__)
        // The compiler's own test also asks the operating system whether it saves the registers. An emulator may lack any one
        // of the features that the target pragmas name; older Clangs cannot ask for lzcnt, which comes with AVX2 everywhere.
        __builtin_cpu_init();
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                          __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt");
        if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi"))
            list.push_back(&kAvx512Vbmi);
        if (avx2) list.push_back(&kAvx2);
#endif
#if defined(__aarch64__)
        list.push_back(&kNeon);
#endif
        list.push_back(&kPortable);
        return list;
    }();
    return found;
}

}  // namespace ccq
