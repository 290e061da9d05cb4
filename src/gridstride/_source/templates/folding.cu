    auto gridstride_reduce = [&](_type_reduce a, _type_reduce b) -> _type_reduce {
        return gridstride::value_of<_type_reduce>::from(
$reduce_expr
        );
    };
    auto gridstride_post = [&](const long long i, _type_reduce a$outputs) -> void {
        (void)i, (void)a;
$post_map_expr
    };
