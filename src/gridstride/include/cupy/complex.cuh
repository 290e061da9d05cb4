// The name users of RawKernel know.
#include <gridstride/complex.h>
