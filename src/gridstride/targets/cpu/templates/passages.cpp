// What loops share, whatever a kernel does: compiled once, and linked to every kernel.
#include <gridstride_cpu/qualifiers.h>
#include <gridstride_cpu/core_language.h>
#include <gridstride_cpu/vectors.h>
#include <gridstride_cpu/execution.h>
#include <gridstride_cpu/passages.h>
#include <gridstride_cpu/untangling.h>

namespace gridstride {

GRIDSTRIDE_PASSAGES(, GRIDSTRIDE_SIZE)
GRIDSTRIDE_GATHERING(, GRIDSTRIDE_SIZE)
GRIDSTRIDE_REPEATING(, GRIDSTRIDE_SIZE)
GRIDSTRIDE_UNTANGLING(, GRIDSTRIDE_SIZE)

__attribute__((used)) static void* const functions[] = {
    reinterpret_cast<void*>(&settle),
    reinterpret_cast<void*>(&finish_lines),
    reinterpret_cast<void*>(&fetch_row_ahead),
    reinterpret_cast<void*>(&rows_of_tile),
    reinterpret_cast<void*>(&place_of_tile),
};

}
