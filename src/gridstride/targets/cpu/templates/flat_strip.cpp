${head}static inline __attribute__((__always_inline__)) void gridstride_strip_$name(const $row& gridstride_here, const int gridstride_first, const int gridstride_count, const int gridstride_done$parameters) {
    $arrays
    for (int gridstride_lane = 0; gridstride_lane < gridstride_count; ++gridstride_lane) {
        const int gridstride_x = gridstride_first + gridstride_lane;
        const long gridstride_global = gridstride_here.__global(gridstride_x);
        (void)gridstride_global;
        $before
        $kept
    }
    for (long gridstride_k = $first; gridstride_k < $bound; gridstride_k += $step)
        for (int gridstride_lane = 0; gridstride_lane < gridstride_count; ++gridstride_lane) {
            const int gridstride_x = gridstride_first + gridstride_lane;
            const long gridstride_global = gridstride_here.__global(gridstride_x);
            const $ctype $variable = static_cast<$ctype>(gridstride_k);
            (void)gridstride_global, (void)$variable;
            $taken
            $loop
            $kept_again
        }
    for (int gridstride_lane = gridstride_done; gridstride_lane < gridstride_count; ++gridstride_lane) {
        const int gridstride_x = gridstride_first + gridstride_lane;
        const long gridstride_global = gridstride_here.__global(gridstride_x);
        (void)gridstride_global;
        $taken
        $after
    }
}
${head}static __noinline__ bool gridstride_strips_$name(const $row gridstride_here, const int gridstride_begin, const int gridstride_end$parameters) {
    bool gridstride_exact = true;
    $compared
    const long gridstride_first = $first, gridstride_last = $bound - 1;
    if (!gridstride_exact || $step <= 0 || gridstride_first > gridstride_last) return false;
    $ranges
    for (int gridstride_corner = 0; gridstride_corner < 4; ++gridstride_corner) {
        const int gridstride_x = gridstride_corner & 1 ? gridstride_end - 1 : gridstride_begin;
        const long gridstride_global = gridstride_here.__global(gridstride_x);
        const $ctype $variable = static_cast<$ctype>(gridstride_corner & 2 ? gridstride_last : gridstride_first);
        (void)gridstride_global, (void)$variable;
        $indices
        $reads
        $writes
    }
    return gridstride_exact && !($meets);
}
${head}static inline __attribute__((__always_inline__)) void gridstride_run_strips_$name(const $row& gridstride_here, const int gridstride_begin, const int gridstride_end$parameters) {
    if (gridstride_end - gridstride_begin < gridstride_strip_width) {
        gridstride_strip_$name$template_arguments(gridstride_here, gridstride_begin, gridstride_end - gridstride_begin, 0$arguments);
        return;
    }
    for (int gridstride_x = gridstride_begin; gridstride_x < gridstride_end; gridstride_x += gridstride_strip_width) {
        const int gridstride_latest = gridstride_end - gridstride_strip_width, gridstride_first = gridstride_x < gridstride_latest ? gridstride_x : gridstride_latest;
        gridstride_strip_$name$template_arguments(gridstride_here, gridstride_first, gridstride_strip_width, gridstride_x - gridstride_first$arguments);
    }
}
