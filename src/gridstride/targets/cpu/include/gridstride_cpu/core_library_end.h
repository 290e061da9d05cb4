// Ends what core_library_begin.h began.
#pragma pop_macro("exit")
#pragma pop_macro("clock_t")
#pragma pop_macro("__CUDA_ARCH__")
#pragma pop_macro("__CUDACC_RTC__")
#pragma pop_macro("__CUDACC__")
