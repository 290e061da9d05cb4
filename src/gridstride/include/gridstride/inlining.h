// How the functions of loops become part of them.
#ifndef GRIDSTRIDE_INLINING_H
#define GRIDSTRIDE_INLINING_H

#define GRIDSTRIDE_INLINED __device__ __forceinline__

#endif
