${head}static inline __attribute__((__always_inline__)) void gridstride_lane_$name(const gridstride_row& gridstride_here, const int gridstride_x, const long gridstride_offset$parameters) {
    const long gridstride_global = gridstride_rows<$merged>::__global(gridstride_here, gridstride_x);
    (void)gridstride_global, (void)gridstride_offset;
    $body
}
${head}static inline __attribute__((__always_inline__)) bool gridstride_active_$name(const gridstride_row& gridstride_here, const int gridstride_x, const long gridstride_offset$parameters) {
    const long gridstride_global = gridstride_rows<$merged>::__global(gridstride_here, gridstride_x);
    (void)gridstride_global, (void)gridstride_offset;
    return $active;
}
${head}static inline bool gridstride_guards_fit_$name(const gridstride_row& gridstride_here, const int gridstride_x, const long gridstride_offset$parameters) {
    const long gridstride_global = gridstride_rows<$merged>::__global(gridstride_here, gridstride_x);
    (void)gridstride_global, (void)gridstride_offset;
    bool gridstride_exact = true;
    $guards
    return gridstride_exact;
}
${head}static inline bool gridstride_indices_fit_$name(const gridstride_row& gridstride_here, const int gridstride_x, const long gridstride_offset$parameters) {
    const long gridstride_global = gridstride_rows<$merged>::__global(gridstride_here, gridstride_x);
    (void)gridstride_global, (void)gridstride_offset;
    bool gridstride_exact = true;
    $indices
    return gridstride_exact;
}
${head}static inline __attribute__((__always_inline__)) $rounds_type gridstride_rounds_$name(const gridstride_row& gridstride_here, const int gridstride_x, const long gridstride_offset$parameters) {
    const long gridstride_global = 0;
    bool gridstride_exact = true;
    (void)gridstride_here, (void)gridstride_x, (void)gridstride_global, (void)gridstride_offset, (void)gridstride_exact;
    return $rounds;
}
${head}static void gridstride_flat_$name(gridstride_block* gridstride_portion$parameters) {
    for (gridstride_rows<$merged> gridstride_r(gridstride_portion); gridstride_r.__has_row(); gridstride_r.__advance()) {
        const gridstride_row gridstride_here = gridstride_r.__row;
        if (!gridstride_r.__fits(
                [&](const int gridstride_x) { return gridstride_guards_fit_$name$template_arguments(gridstride_here, gridstride_x, 0$arguments); },
                [&](const int gridstride_x) { return gridstride_active_$name$template_arguments(gridstride_here, gridstride_x, 0$arguments); },
                [&](const int gridstride_x, const long gridstride_offset) { return gridstride_indices_fit_$name$template_arguments(gridstride_here, gridstride_x, gridstride_offset$arguments); },
                gridstride_rounds_$name$template_arguments(gridstride_here, 0, 0$arguments))) {
            gridstride_portion->is_refused = 1;
            return;
        }
    }
    for (gridstride_rows<$merged> gridstride_r(gridstride_portion); gridstride_r.__has_row(); gridstride_r.__advance()) {
        const gridstride_row gridstride_here = gridstride_r.__row;
        gridstride_r.__find_active(
            [&](const int gridstride_x) { return gridstride_active_$name$template_arguments(gridstride_here, gridstride_x, 0$arguments); });
        gridstride_run_rounds(
            gridstride_r, gridstride_rounds_$name$template_arguments(gridstride_here, 0, 0$arguments),
            [&](const int gridstride_x, const long gridstride_offset) {
                gridstride_lane_$name$template_arguments(gridstride_here, gridstride_x, gridstride_offset$arguments);
            });
    }
}
