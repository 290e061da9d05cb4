// What every kernel sees before its own text: CUDA's language and its built-in names, without any
// header of the C or C++ library, which would cost several times the compilation of a small kernel.
#ifndef GRIDSTRIDE_CPU_PRELUDE_H
#define GRIDSTRIDE_CPU_PRELUDE_H

#include "qualifiers.h"
#include "core_language.h"
#include "vectors.h"
#include "execution.h"
#include "warp.h"
#include "bits.h"
#include "math_functions.h"
#include "special_functions.h"
#include "rounding.h"
#include "conversions.h"
#include "integer_intrinsics.h"
#include "simd_in_word.h"
#include "memory.h"
#include "address_spaces.h"
#include "atomics.h"

#endif
