if (gridstride_now == GRIDSTRIDE_CHECK) {
    for (int gridstride_x = gridstride_begin;; gridstride_x = gridstride_end - 1) {
        const long gridstride_global = gridstride_here.__global(gridstride_x);
        (void)gridstride_global;
        $guards
        if (gridstride_x == gridstride_end - 1) break;
    }
    if (!gridstride_exact) return false;
}
for (; gridstride_begin < gridstride_end; ++gridstride_begin) {
    const int gridstride_x = gridstride_begin;
    const long gridstride_global = gridstride_here.__global(gridstride_x);
    (void)gridstride_global;
    if ($active) break;
}
for (; gridstride_begin < gridstride_end; --gridstride_end) {
    const int gridstride_x = gridstride_end - 1;
    const long gridstride_global = gridstride_here.__global(gridstride_x);
    (void)gridstride_global;
    if ($active) break;
}
if (gridstride_begin == gridstride_end) return true;
