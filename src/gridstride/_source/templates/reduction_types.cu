$type_preamble
$types
$preamble
$layouts
#line 1 "reduction kernel"
$reduce_type
typedef gridstride::folding<_type_reduce, $has_identity> gridstride_folding;
