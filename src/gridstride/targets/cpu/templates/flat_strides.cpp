const long gridstride_first = $first, gridstride_bound = $bound, gridstride_step = $step;
if (gridstride_now == GRIDSTRIDE_CHECK) {
    $last;
    if (!gridstride_exact || gridstride_step <= 0) return false;
    const long gridstride_left = gridstride_bound - 1 - gridstride_first;
    const long gridstride_most = gridstride_left < 0 ? 0 : gridstride_left / gridstride_step * gridstride_step;
    for (long gridstride_offset = 0;; gridstride_offset = gridstride_most) {
        for (int gridstride_x = gridstride_begin;; gridstride_x = gridstride_end - 1) {
            const long gridstride_global = gridstride_here.__global(gridstride_x);
            (void)gridstride_global;
            $indices
            if (gridstride_x == gridstride_end - 1) break;
        }
        if (gridstride_offset == gridstride_most) break;
    }
} else {
    for (long gridstride_offset = 0; gridstride_first + gridstride_offset < gridstride_bound; gridstride_offset += gridstride_step) {
        const long gridstride_left = gridstride_bound - gridstride_first - gridstride_offset;
        const int gridstride_stop = gridstride_left < gridstride_end - gridstride_begin ? gridstride_begin + static_cast<int>(gridstride_left) : gridstride_end;
        for (int gridstride_x = gridstride_begin; gridstride_x < gridstride_stop; ++gridstride_x)
            gridstride_lane_$name$template_arguments(gridstride_here, gridstride_x, gridstride_here.__global(gridstride_x), gridstride_offset$arguments);
    }
}
