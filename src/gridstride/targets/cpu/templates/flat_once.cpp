if (gridstride_now == GRIDSTRIDE_CHECK) {
    const long gridstride_offset = 0;
    (void)gridstride_offset;
    for (int gridstride_x = gridstride_begin;; gridstride_x = gridstride_end - 1) {
        const long gridstride_global = gridstride_here.__global(gridstride_x);
        (void)gridstride_global;
        $indices
        if (gridstride_x == gridstride_end - 1) break;
    }
} else $strips{
    for (int gridstride_x = gridstride_begin; gridstride_x < gridstride_end; ++gridstride_x)
        gridstride_lane_$name$template_arguments(gridstride_here, gridstride_x, gridstride_here.__global(gridstride_x), 0$arguments);
}
