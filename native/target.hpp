// Compile what follows for more than the baseline. After all includes, so that no shared inline function is emitted in a
// form that older CPUs lack and then picked by the linker for everyone.
#pragma once
#define CCQ_PRAGMA(x) _Pragma(#x)
#if defined(__clang__)
#define CCQ_TARGET_BEGIN(features) \
    CCQ_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define CCQ_TARGET_END CCQ_PRAGMA(clang attribute pop)
#else
#define CCQ_TARGET_BEGIN(features) CCQ_PRAGMA(GCC push_options) CCQ_PRAGMA(GCC target(features))
#define CCQ_TARGET_END CCQ_PRAGMA(GCC pop_options)
#endif
