/* The part of DLPack 1.3's C exchange interface that looking at a tensor takes. */
#ifndef GRIDSTRIDE_DLPACK_ABI_H
#define GRIDSTRIDE_DLPACK_ABI_H

#include <stdint.h>

#define DLPACK_EXCHANGE_ATTRIBUTE "__dlpack_c_exchange_api__"
#define DLPACK_EXCHANGE_CAPSULE "dlpack_exchange_api"

enum dlpack_device { DLPACK_HOST = 1, DLPACK_CUDA = 2 };
enum dlpack_code { DLPACK_INT, DLPACK_UINT, DLPACK_FLOAT, DLPACK_BFLOAT = 4, DLPACK_COMPLEX = 5, DLPACK_BOOL = 6 };

struct dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device;
    int32_t ndim;
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements */
    uint64_t byte_offset;
};

struct dlpack_exchange {
    uint32_t major, minor;
    struct dlpack_exchange *previous;
    void *allocate;
    void *export_managed;
    void *import_managed;
    int (*view)(void *object, struct dlpack_tensor *seen); /* null where not offered */
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
};

#endif
