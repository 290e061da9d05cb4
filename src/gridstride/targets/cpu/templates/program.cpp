$headers
$own_includes
extern "C" __attribute__((visibility("default"))) const char* const gridstride_source_path = "$path";
#line 1 "$options_path"
$options
$includes
#line 1 "$path"
$text
#line 1 "$requests"
$entries
