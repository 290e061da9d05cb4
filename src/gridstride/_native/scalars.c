/* Pack numbers passed by value, by the rules of `_arguments/scalars.py`. */
#include "native.h"
#include "numpy_abi.h"

#include <math.h>
#include <string.h>

enum form { INTEGER, REAL, COMPLEX };

struct number {
    enum form form;
    int is_negative;
    unsigned long long bits; /* of an integer, two's complement */
    double real, imaginary;
};

static void hold_signed(struct number *number, long long value)
{
    number->form = INTEGER;
    number->is_negative = value < 0;
    number->bits = (unsigned long long)value;
    number->real = (double)value;
    number->imaginary = 0;
}

static void hold_unsigned(struct number *number, unsigned long long value)
{
    number->form = INTEGER;
    number->is_negative = 0;
    number->bits = value;
    number->real = (double)value;
    number->imaginary = 0;
}

static void hold_floating(struct number *number, enum form form, double real, double imaginary)
{
    number->form = form;
    number->is_negative = 0;
    number->bits = 0;
    number->real = real;
    number->imaginary = imaginary;
}

static int read_long(PyObject *value, struct number *number)
{
    int overflow;
    long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
        hold_signed(number, small);
        return 1;
    }
    unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    hold_unsigned(number, large);
    return 1;
}

static int read_numpy(enum dtype dtype, const char *bytes, struct number *number)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32[2];
        double f64[2];
    } content;
    union {
        uint32_t bits;
        float value;
    } widened;
    memcpy(&content, bytes, dtype_sizes[dtype]);
    switch (dtype) {
    case BOOL:
    case UINT8: hold_unsigned(number, content.u8); return 1;
    case UINT16: hold_unsigned(number, content.u16); return 1;
    case UINT32: hold_unsigned(number, content.u32); return 1;
    case UINT64: hold_unsigned(number, content.u64); return 1;
    case INT8: hold_signed(number, content.i8); return 1;
    case INT16: hold_signed(number, content.i16); return 1;
    case INT32: hold_signed(number, content.i32); return 1;
    case INT64: hold_signed(number, content.i64); return 1;
    case BFLOAT16:
        widened.bits = (uint32_t)content.u16 << 16;
        hold_floating(number, REAL, widened.value, 0);
        return 1;
    case FLOAT32: hold_floating(number, REAL, content.f32[0], 0); return 1;
    case FLOAT64: hold_floating(number, REAL, content.f64[0], 0); return 1;
    case COMPLEX64: hold_floating(number, COMPLEX, content.f32[0], content.f32[1]); return 1;
    case COMPLEX128: hold_floating(number, COMPLEX, content.f64[0], content.f64[1]); return 1;
    default: return 0;
    }
}

static int read_number(PyObject *value, struct number *number)
{
    if (PyLong_CheckExact(value) || PyBool_Check(value))
        return read_long(value, number);
    if (PyFloat_CheckExact(value)) {
        hold_floating(number, REAL, PyFloat_AsDouble(value), 0);
        return 1;
    }
    if (PyComplex_CheckExact(value)) {
        hold_floating(number, COMPLEX, PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value));
        return 1;
    }
    const struct known_type *known = known_type_of(value);
    if (known == NULL || known->library != NUMPY_SCALAR)
        return 0;
    return read_numpy(known->dtype, ((const struct numpy_scalar *)value)->value, number);
}

static void store(unsigned long long bits, unsigned size, unsigned char *packed)
{
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;
    switch (size) {
    case 1: *packed = (unsigned char)bits; break;
    case 2: memcpy(packed, &two, sizeof two); break;
    case 4: memcpy(packed, &four, sizeof four); break;
    default: memcpy(packed, &bits, sizeof bits);
    }
}

static int pack_integer(enum dtype dtype, const struct number *number, unsigned char *packed)
{
    unsigned size = dtype_sizes[dtype];
    int is_signed = dtype == INT8 || dtype == INT16 || dtype == INT32 || dtype == INT64;
    unsigned long long highest = dtype == BOOL ? 1 : (~0ULL >> (64 - 8 * size)) >> is_signed;
    /* -1 - x of a negative x is not negative, and the lowest value has that of the highest */
    unsigned long long magnitude = number->is_negative ? ~number->bits : number->bits;
    if (number->form != INTEGER || (number->is_negative && !is_signed) || magnitude > highest)
        return 0;
    store(number->bits, size, packed);
    return 1;
}

static int pack_floats(const struct number *number, int parts, unsigned char *packed)
{
    const double wanted[2] = {number->real, number->imaginary};
    const float stored[2] = {(float)number->real, (float)number->imaginary};
    int is_finite = 1, stays_finite = 1;
    for (int k = 0; k < parts; ++k) {
        is_finite &= isfinite(wanted[k]) != 0;
        stays_finite &= isfinite(stored[k]) != 0;
    }
    if (is_finite && !stays_finite)
        return 0;
    memcpy(packed, stored, parts * sizeof *stored);
    return 1;
}

int is_plain_number(PyObject *value)
{
    return value == Py_None || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value) ||
           PyComplex_CheckExact(value);
}

/* Round to the nearest float16, ties to even. NaN and what becomes infinite are left to the pipeline. */
static int round_to_half(double value, uint16_t *half)
{
    enum { FRACTION = 10, BIAS = 15, LEAST = 1 - BIAS };
    double magnitude = fabs(value);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isinf(value)) {
        *half = sign | 0x7c00;
        return 1;
    }
    if (!(magnitude < 65520))
        return 0;
    int exponent = LEAST;
    if (magnitude >= ldexp(1, LEAST))
        exponent = ilogb(magnitude);
    /* Above the least exponent the leading bit of the fraction adds one to the exponent's bits. */
    unsigned fraction = (unsigned)nearbyint(ldexp(magnitude, FRACTION - exponent));
    *half = (uint16_t)(sign | (((unsigned)(exponent - LEAST) << FRACTION) + fraction));
    return 1;
}

/* Round to float32 and then to bfloat16, ties to even, as the pipeline does. */
static int round_to_bfloat16(double value, uint16_t *bfloat)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    *bfloat = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    return !isnan(value) && !(isfinite(value) && (*bfloat & 0x7f80) == 0x7f80);
}

static int pack_half(enum dtype dtype, PyObject *value, unsigned char *packed)
{
    const struct known_type *known = is_plain_number(value) ? NULL : known_type_of(value);
    struct number number;
    uint16_t half;
    if (known != NULL && known->library == NUMPY_SCALAR && known->dtype == dtype) {
        memcpy(packed, ((const struct numpy_scalar *)value)->value, dtype_sizes[dtype]);
        return 1;
    }
    if (!read_number(value, &number) || number.form == COMPLEX)
        return 0;
    if (!(dtype == FLOAT16 ? round_to_half : round_to_bfloat16)(number.real, &half))
        return 0;
    memcpy(packed, &half, sizeof half);
    return 1;
}

int pack_scalar(enum dtype dtype, PyObject *value, unsigned char *packed)
{
    struct number number;
    if (dtype == FLOAT16 || dtype == BFLOAT16)
        return pack_half(dtype, value, packed);
    if (!read_number(value, &number))
        return 0;
    int is_complex = dtype == COMPLEX64 || dtype == COMPLEX128;
    if (number.form == COMPLEX && !is_complex)
        return 0;
    switch (dtype) {
    case FLOAT32: return pack_floats(&number, 1, packed);
    case COMPLEX64: return pack_floats(&number, 2, packed);
    case FLOAT64: memcpy(packed, &number.real, sizeof number.real); return 1;
    case COMPLEX128:
        memcpy(packed, &number.real, sizeof number.real);
        memcpy(packed + sizeof number.real, &number.imaginary, sizeof number.imaginary);
        return 1;
    default: return pack_integer(dtype, &number, packed);
    }
}
