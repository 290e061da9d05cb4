#include <gridstride_cpu/prelude.h>
extern "C" __attribute__((visibility("default"))) const char* const gridstride_source_path = "$path";
$includes
#line 1 "$path"
$text
#line 1 "$requests"
$entries
#line 1 "$closing"
#include <gridstride_cpu/entry.h>
