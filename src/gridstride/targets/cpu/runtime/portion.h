// Portions of the flat tier: neighboring blocks of one row of the grid, whose threads run in rows.
#ifndef GRIDSTRIDE_RUNTIME_PORTION_H
#define GRIDSTRIDE_RUNTIME_PORTION_H

#include <gridstride_cpu/flat.h>

#include "scheduler.h"

namespace gridstride {

// Goes through the rows of a portion: over all of its blocks where rows are merged, else block by block.
class Rows {
public:
    Rows(const Block* block, bool is_merged)
        : row{block->block_shape, block->grid_shape, block->block_index, 0, 0, 0, 0, 0},
          count(block->block_shape.y * block->block_shape.z * (is_merged ? 1 : block->portion_blocks)) {
        const unsigned width = block->block_shape.x;
        row.__first_x = int(row.__block_index.x * width);
        row.__begin = is_merged ? row.__first_x : 0;
        row.__end = row.__begin + int(is_merged ? width * block->portion_blocks : width);
    }

    const gridstride_row* current() const { return index < count ? &row : nullptr; }

    void advance() {
        ++index;
        if (++row.__thread_y < row.__block_shape.y) return;
        row.__thread_y = 0;
        if (++row.__thread_z < row.__block_shape.z) return;
        row.__thread_z = 0;
        ++row.__block_index.x;
        row.__first_x += int(row.__block_shape.x);
    }

private:
    gridstride_row row;
    unsigned count, index = 0;
};

// False as soon as a row is refused.
inline bool run_rows(const Block* block, gridstride_phase phase) {
    const gridstride_kernel* kernel = block->launch->function->kernel;
    for (Rows rows(block, kernel->is_merged); const gridstride_row* row = rows.current(); rows.advance())
        if (!kernel->run_row(row, block->argument_bytes, phase)) return false;
    return true;
}

// What fibers of portions begin with. Nothing runs before all rows are known to fit.
inline void run_portions() {
    Block* block = gridstride_running_block;
    for (;;) {
        block->is_refused = !run_rows(block, GRIDSTRIDE_CHECK);
        if (!block->is_refused) run_rows(block, GRIDSTRIDE_RUN);
        end_sequential(block);
    }
}

}  // namespace gridstride
#endif
