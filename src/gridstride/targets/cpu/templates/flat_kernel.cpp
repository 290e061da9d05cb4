${head}static inline __attribute__((__always_inline__)) void gridstride_lane_$name(const $row& gridstride_here, const int gridstride_x, const long gridstride_global, const long gridstride_offset$parameters) {
    (void)gridstride_x, (void)gridstride_global, (void)gridstride_offset;
    $body
}
$strip${head}static bool gridstride_flat_$name(const $row gridstride_here, const gridstride_phase gridstride_now$parameters) {
    bool gridstride_exact = true;
    int gridstride_begin = gridstride_here.__begin, gridstride_end = gridstride_here.__end;
    $narrowed
    $rounds
    return gridstride_exact;
}
