// CUDA's constants, under the name that CuPy gives them.
#include <math_constants.h>
