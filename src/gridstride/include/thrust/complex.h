// The name users of CUDA C++ know: ours, since the original does not compile at run time.
#include <gridstride/complex.h>
