// What every kernel sees before its own text: CUDA's language and its built-in names, without any
// header of the C or C++ library, which would cost several times the compilation of a small kernel.
#ifndef GRIDSTRIDE_CPU_PRELUDE_H
#define GRIDSTRIDE_CPU_PRELUDE_H

#include "qualifiers.h"
#include <gridstride/fixed_width.h>
#include "vectors.h"
#if __has_include("execution.h")
#include "execution.h"
#else
void gridstride_spin_hint();
#endif
#include "bits.h"
#include "math_functions.h"
#include "atomics.h"

extern "C" void* memcpy(void*, const void*, size_t) noexcept;
extern "C" void* memset(void*, int, size_t) noexcept;

#endif
