// How a walk is cut into boxes (see boxes.h), as a launch is told, and how long the runs of one are.
#ifndef GRIDSTRIDE_BOX_SPACE_H
#define GRIDSTRIDE_BOX_SPACE_H

#include <gridstride/packets.h>

namespace gridstride {

// The runs of a box in one order. Along axis `cut`, the last that runs have, boxes may end before their extent. A warp takes
// pieces of runs.
struct box_runs {
    int unit;   // elements for a step along `cut`
    int rows;   // runs for a step along the other order's `cut`, where that is another axis
    int cut, axes;
    int length, runs;   // of a run of a whole box; how many it has
    int pieces, piece;  // of a run; words of one
    unsigned multiplier, shift;  // to divide by `pieces`
    GRIDSTRIDE_INLINED int run_of(int& __piece) const {
        const unsigned __n = static_cast<unsigned>(__piece), __run = (__umulhi(__n, multiplier) + __n) >> shift;
        __piece = int(__n - __run * pieces);
        return int(__run);
    }
};

// Boxes follow each other along the axes `way`, of which the first `ways` have several boxes; layers along the first one.
template <int __axes>
struct box_space {
    long long size;      // of all elements
    long long distance;  // from a layer to the next
    int between;         // the logarithm of how many boxes there are from a layer to the next
    int boxes;           // of all layers, one a block
    int ways, elements;  // elements: of a whole box
    int together;        // the logarithm of how many threads bring a run of a layer
    int written;         // parts of rows of the table of places
    int parts, part;     // of a row of the table of places; elements of one
    unsigned multiplier, shift;  // to divide by `parts`
    box_runs x, y;
    int length[__axes], extent[__axes];  // along the way
    int y_step[__axes];                  // from an element to the next one in order y, for the axes in order x
    int x_way[__axes], y_way[__axes];    // where the axes in order x, and in order y, are on the way
    axes<__axes> box, y_box, boxes_along;  // extents in order x and in order y; boxes along the way
    numbering<__axes> numbers;             // along the way
};

// How long the runs of a box are, and how many.
struct box_lengths { int x_run, x_runs, y_run, y_runs; };

// A box in each layer. Later layers have no more of it.
struct box_part {
    long long number;  // of its first element
    int x_cut, y_cut;  // how long it is along the axes at which runs end
    int left;          // from where it begins along the first axis of the way
    bool are_even;     // whether all layers have the same of it

    template <int __axes>
    GRIDSTRIDE_INLINED box_lengths lengths(const box_space<__axes>& __space, int __layer) const {
        const int __rest = left - __layer * int(__space.distance), __extent = __space.extent[0];
        const int __along = __rest < 0 ? 0 : __rest < __extent ? __rest : __extent, __some = __rest > 0;
        const int __x = __space.x.cut == 0 ? __along : x_cut, __y = __space.y.cut == 0 ? __along : y_cut;
        const bool __are_one = __space.x.cut == __space.y.cut;
        return box_lengths{__space.x.unit * __x, __some * __space.x.rows * (__are_one ? 1 : __y), __space.y.unit * __y,
                           __some * __space.y.rows * (__are_one ? 1 : __x)};
    }
};

// Where the words of a run are that all layers have, and how many before them a line of the cache begins.
template <int __layers, int __size>
struct words_of_run {
    int begin, end, before;
    GRIDSTRIDE_INLINED words_of_run(int __length, const char* __run) {
        const unsigned __at = static_cast<unsigned>(reinterpret_cast<unsigned long long>(__run)) / __size;
        begin = __layers == 1 ? 0 : (__layers - int(__at % __layers)) % __layers;
        begin = begin < __length ? begin : __length;
        end = begin + (__length - begin) / __layers * __layers;
        before = int((__at + begin) / __layers % line);
    }
    static constexpr int line = 128 / (__layers * __size) < 32 ? 128 / (__layers * __size) : 32;
    // The first element of a thread in a piece, or the last one; pieces begin where the line does.
    GRIDSTRIDE_INLINED int first_of(const box_runs& __runs, int __piece) const { return begin + (__piece * __runs.piece - before) * __layers; }
    GRIDSTRIDE_INLINED int last_of(const box_runs& __runs, int __piece) const {
        const int __stop = first_of(__runs, __piece + 1);
        return __stop < end ? __stop : end;
    }
};

}

#endif
