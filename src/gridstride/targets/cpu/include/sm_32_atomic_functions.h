// What kernels use of this header comes before their text anyway.
#include <gridstride_cpu/prelude.h>
