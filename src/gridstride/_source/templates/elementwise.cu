$type_preamble
$types
$preamble
$layouts
#line 1 "elementwise kernel"
extern "C" __global__ void __launch_bounds__($threads) $name($parameters) {
    const long long n = gridstride_space.size;
    (void)n;
$scalars
    $shared
    $loop_prep
    auto gridstride_operation = [&](const long long i$elements) -> void {
        $index
        (void)i;
        do {
$operation
        } while (0);
    };
    gridstride::$loop(gridstride_operation, gridstride_space$handed$operands);
    $after_loop
}
