// What a fold of several rows for each result needs, of which every row is a part: loops over rows, and one that joins
// parts that lie as rows do.
#ifndef GRIDSTRIDE_FOLD_PARTS_OF_ROWS_H
#define GRIDSTRIDE_FOLD_PARTS_OF_ROWS_H

#include <gridstride/fold_columns.h>
#include <gridstride/fold_lines.h>
#include <gridstride/fold_short.h>

#endif
