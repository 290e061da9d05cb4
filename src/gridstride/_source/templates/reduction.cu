extern "C" __global__ void __launch_bounds__($threads) $name($parameters) {
    const gridstride::counted _in_ind = {gridstride_space.size}, _out_ind = {gridstride_space.outputs};
    const long long _fold_size = gridstride_space.size / gridstride_space.outputs;
    (void)_in_ind, (void)_out_ind, (void)_fold_size;
$shared
$structures
    auto gridstride_map = [&$numbers](const long long i, const long long _J$elements) -> _type_reduce {
        (void)i, (void)_J;
        return gridstride::value_of<_type_reduce>::from(
$map_expr
        );
    };
$operations
    // Of one result or of neighbors.
    auto gridstride_finish = [&](const auto at, const int part, const auto& folded) {
$finish    };
    ${begin}gridstride::$loop($map, $reduce, gridstride_finish, gridstride_folding($identity), gridstride_space$handed$operands)$end;
}
