
__device__ int turned(int v) {
    __shared__ int s[32];
    s[v] = v; __syncthreads(); return s[31 - v];
}