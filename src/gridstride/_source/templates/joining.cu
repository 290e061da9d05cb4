extern "C" __global__ void __launch_bounds__($threads) $name($parameters) {
    const gridstride::counted _in_ind = {gridstride_space.size}, _out_ind = {gridstride_space.outputs};
    const long long _fold_size = gridstride_space.size / gridstride_space.outputs;
    (void)_in_ind, (void)_out_ind, (void)_fold_size;
$shared
$structures
    auto gridstride_map = [&](const long long, const long long, const gridstride_folding& part) -> _type_reduce {
        return part.value;
    };
$operations
    auto gridstride_finish = [&](const auto at, const int, const auto& folded) {
        gridstride::assign(gridstride_post, folded, gridstride_space, at$results);
    };
    ${begin}gridstride::$loop(gridstride_map, gridstride_reduce, gridstride_finish, gridstride_folding($identity), gridstride_parts$handed, gridstride_workspace)$end;
}
