// Cooperative groups: the grid, the block, tiles of a warp, the coalesced threads, and their collectives.
//
// A group of at most a warp is a mask of lanes; its collectives stand on gridstride_collective (warp.h).
#ifndef GRIDSTRIDE_CPU_COOPERATIVE_GROUPS_H
#define GRIDSTRIDE_CPU_COOPERATIVE_GROUPS_H

#include <gridstride_cpu/prelude.h>

namespace cooperative_groups {

// ---- the grid ----

class grid_group {
  public:
    bool is_valid() const { return true; }
    void sync(GRIDSTRIDE_SITE) const { gridstride_grid_sync(__file, __line); }
    // The wait does it all.
    using arrival_token = unsigned;
    arrival_token barrier_arrive() const { return 0; }
    void barrier_wait(arrival_token&&, GRIDSTRIDE_SITE) const { gridstride_grid_sync(__file, __line); }
    static dim3 block_index() { return dim3(gridstride_block_index()); }
    static dim3 thread_index() {
        const dim3 block = gridstride_block_shape(), number = block_index(), own = dim3(gridstride_thread_index());
        return dim3(number.x * block.x + own.x, number.y * block.y + own.y, number.z * block.z + own.z);
    }
    static dim3 dim_blocks() { return gridstride_grid_shape(); }
    static dim3 dim_threads() {
        const dim3 grid = gridstride_grid_shape(), block = gridstride_block_shape();
        return dim3(grid.x * block.x, grid.y * block.y, grid.z * block.z);
    }
    static dim3 group_dim() { return dim_blocks(); }
    // Every block is a cluster of its own.
    static dim3 cluster_index() { return block_index(); }
    static dim3 dim_clusters() { return dim_blocks(); }
    static unsigned long long num_clusters() { return num_blocks(); }
    static unsigned long long cluster_rank() { return block_rank(); }
    static unsigned long long num_blocks() {
        const dim3 __grid = dim_blocks();
        return static_cast<unsigned long long>(__grid.x) * __grid.y * __grid.z;
    }
    static unsigned long long block_rank() {
        const dim3 __grid = dim_blocks(), __block = block_index();
        return (static_cast<unsigned long long>(__block.z) * __grid.y + __block.y) * __grid.x + __block.x;
    }
    static unsigned long long num_threads() { return num_blocks() * gridstride_thread_count(); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long thread_rank() { return block_rank() * gridstride_thread_count() + gridstride_thread_rank(); }
};

inline grid_group this_grid() { return grid_group(); }

// ---- the block ----

class thread_block {
  public:
    static void sync(GRIDSTRIDE_SITE) { __syncthreads(__file, __line); }
    using arrival_token = unsigned;
    arrival_token barrier_arrive() const { return gridstride_arrive_at(GRIDSTRIDE_BLOCK_BARRIER); }
    void barrier_wait(arrival_token&& __token, GRIDSTRIDE_SITE) const {
        gridstride_wait_at(GRIDSTRIDE_BLOCK_BARRIER, __token, 0, 0, GRIDSTRIDE_MAX_THREADS, __file, __line);
    }
    static unsigned thread_rank() { return gridstride_thread_rank(); }
    static unsigned num_threads() { return gridstride_thread_count(); }
    static unsigned size() { return num_threads(); }
    static dim3 group_index() { return dim3(gridstride_block_index()); }
    static dim3 thread_index() { return dim3(gridstride_thread_index()); }
    static dim3 dim_threads() { return gridstride_block_shape(); }
    static dim3 group_dim() { return dim_threads(); }
};

inline thread_block this_thread_block() { return thread_block(); }

// What tiles larger than a warp work with on a device; nothing here.
template <unsigned __most_threads = 1024>
struct block_tile_memory {
    char __unused;
};
template <unsigned __most_threads>
thread_block this_thread_block(block_tile_memory<__most_threads>&) {
    return thread_block();
}

// ---- lanes of a warp: what tiles and coalesced groups share ----

class gridstride_lane_group {
  public:
    void sync(GRIDSTRIDE_SITE) const {
        gridstride_collective(GRIDSTRIDE_COLLECTIVE_GROUP_SYNC, __mask, char(), __file, __line,
                              [](const gridstride_gathered&) { return 0; });
    }
    unsigned thread_rank() const { return __rank; }
    unsigned num_threads() const { return __count; }
    unsigned size() const { return __count; }
    unsigned meta_group_rank() const { return __meta_rank; }
    unsigned meta_group_size() const { return __meta_count; }
    unsigned get_mask() const { return __mask; }

    template <class __t>
    __t shfl(__t __value, int __source, GRIDSTRIDE_SITE) const {
        return __from_rank(__value, static_cast<unsigned>(__source) % __count, __file, __line);
    }
    template <class __t>
    __t shfl_up(__t __value, unsigned __delta, GRIDSTRIDE_SITE) const {
        return __from_rank(__value, __delta <= __rank ? __rank - __delta : __rank, __file, __line);
    }
    template <class __t>
    __t shfl_down(__t __value, unsigned __delta, GRIDSTRIDE_SITE) const {
        return __from_rank(__value, __delta < __count - __rank ? __rank + __delta : __rank, __file, __line);
    }

    int any(int __predicate, GRIDSTRIDE_SITE) const { return __votes(__predicate, __file, __line).true_lanes != 0; }
    int all(int __predicate, GRIDSTRIDE_SITE) const {
        const gridstride_ballot_result __result = __votes(__predicate, __file, __line);
        return __result.true_lanes == __result.participants;
    }
    unsigned ballot(int __predicate, GRIDSTRIDE_SITE) const { return __ranks(__votes(__predicate, __file, __line).true_lanes); }

    template <class __t>
    unsigned match_any(__t __value, GRIDSTRIDE_SITE) const {
        return __ranks(gridstride_match(GRIDSTRIDE_COLLECTIVE_GROUP_EXCHANGE, __mask, __value, __file, __line, false));
    }
    template <class __t>
    unsigned match_all(__t __value, int& __matches, GRIDSTRIDE_SITE) const {
        const unsigned __lanes = gridstride_match(GRIDSTRIDE_COLLECTIVE_GROUP_EXCHANGE, __mask, __value, __file, __line, true);
        __matches = __lanes != 0;
        return __ranks(__lanes);
    }

    // Fills `all[rank]` with what each thread of the group brings; zeros for those that have exited.
    template <class __t>
    void gridstride_gather_all(const __t& __value, __t* __all, const char* __file, unsigned __line) const {
        for (unsigned __start = 0; __start < sizeof(__t); __start += sizeof(gridstride_slot)) {
            gridstride_slot __part{};
            const unsigned __bytes = sizeof(__t) - __start < sizeof __part ? sizeof(__t) - __start : sizeof __part;
            __builtin_memcpy(&__part, reinterpret_cast<const char*>(&__value) + __start, __bytes);
            gridstride_collective(
                GRIDSTRIDE_COLLECTIVE_GROUP_EXCHANGE, __mask, __part, __file, __line,
                [this, __all, __start, __bytes](const gridstride_gathered& __gathered) {
                    for (unsigned __r = 0; __r < __count; ++__r) {
                        const unsigned __lane = __lane_of(__r);
                        gridstride_slot __other{};
                        if (__gathered.participants >> __lane & 1) __other = __gathered.template value<gridstride_slot>(__lane);
                        __builtin_memcpy(reinterpret_cast<char*>(__all + __r) + __start, &__other, __bytes);
                    }
                    return 0;
                });
        }
    }

    // The lanes of the calling thread's warp that belong to the group.
    unsigned gridstride_mask() const { return __mask; }

  protected:
    gridstride_lane_group(unsigned __lanes, unsigned __number, unsigned __groups)
        : __mask(__lanes), __rank(__popc(__lanes & ((1u << gridstride_lane()) - 1))), __count(__popc(__lanes)),
          __meta_rank(__number), __meta_count(__groups) {}

    template <class __t>
    __t __from_rank(const __t& __value, unsigned __source, const char* __file, unsigned __line) const {
        __t __result;
        const unsigned __lane = __lane_of(__source);
        for (unsigned __start = 0; __start < sizeof(__t); __start += sizeof(gridstride_slot)) {
            gridstride_slot __part{};
            const unsigned __bytes = sizeof(__t) - __start < sizeof __part ? sizeof(__t) - __start : sizeof __part;
            __builtin_memcpy(&__part, reinterpret_cast<const char*>(&__value) + __start, __bytes);
            __part = gridstride_shuffle(GRIDSTRIDE_COLLECTIVE_GROUP_EXCHANGE, __mask, __part, __lane, __file, __line);
            __builtin_memcpy(reinterpret_cast<char*>(&__result) + __start, &__part, __bytes);
        }
        return __result;
    }

  private:
    unsigned __mask, __rank, __count, __meta_rank, __meta_count;

    unsigned __lane_of(unsigned __r) const {
        const unsigned __first = static_cast<unsigned>(__builtin_ctz(__mask));
        const bool __is_contiguous = ((__mask >> __first) & ((__mask >> __first) + 1)) == 0;
        return __is_contiguous ? (__first + __r) & 31 : __fns(__mask, 0, static_cast<int>(__r) + 1) & 31;
    }
    // A mask of lanes as a mask of ranks in the group.
    unsigned __ranks(unsigned __lanes) const {
        unsigned __result = 0, __r = 0;
        for (unsigned __rest = __mask; __rest; __rest &= __rest - 1, ++__r)
            if (__lanes & __rest & -__rest) __result |= 1u << __r;
        return __result;
    }
    gridstride_ballot_result __votes(int __predicate, const char* __file, unsigned __line) const {
        return gridstride_ballot(GRIDSTRIDE_COLLECTIVE_GROUP_EXCHANGE, __mask, __predicate, __file, __line);
    }
};

// ---- tiles of a fixed size: of a warp at most ----

inline unsigned gridstride_tile_mask(unsigned __size) {
    return (__size >= 32 ? ~0u : (1u << __size) - 1) << (gridstride_lane() & ~(__size - 1));
}

template <unsigned __size>
class gridstride_small_tile : public gridstride_lane_group {
  public:
    gridstride_small_tile(unsigned __number, unsigned __groups)
        : gridstride_lane_group(gridstride_tile_mask(__size), __number, __groups) {}

    static unsigned thread_rank() { return gridstride_lane() & (__size - 1); }
    static constexpr unsigned num_threads() { return __size; }
    static constexpr unsigned size() { return __size; }

    template <class __t>
    __t shfl_xor(__t __value, unsigned __bits, GRIDSTRIDE_SITE) const {
        const unsigned __source = thread_rank() ^ __bits;
        return this->__from_rank(__value, __source < __size ? __source : thread_rank(), __file, __line);
    }
};

// ---- tiles of several warps ----

// Their threads show each other where their values are, and meet at a barrier before and after they look.
template <unsigned __size>
class gridstride_large_tile {
  public:
    gridstride_large_tile(unsigned __number, unsigned __groups) : __meta_rank(__number), __meta_count(__groups) {}

    static unsigned thread_rank() { return gridstride_thread_rank() & (__size - 1); }
    static constexpr unsigned num_threads() { return __size; }
    static constexpr unsigned size() { return __size; }
    unsigned meta_group_rank() const { return __meta_rank; }
    unsigned meta_group_size() const { return __meta_count; }

    void sync(GRIDSTRIDE_SITE) const {
        const unsigned __barrier = GRIDSTRIDE_TILE_BARRIERS + GRIDSTRIDE_MAX_THREADS / __size + __first() / __size;
        gridstride_wait_at(__barrier, gridstride_arrive_at(__barrier), 0, __first(), __size, __file, __line);
    }
    template <class __t>
    __t shfl(__t __value, unsigned __source, GRIDSTRIDE_SITE) const {
        __t __result;
        gridstride_look(__value, __file, __line, [&](unsigned) { __result = *gridstride_shown<__t>(__source % __size); });
        return __result;
    }
    int any(int __predicate, GRIDSTRIDE_SITE) const { return __count(__predicate, __file, __line).true_count != 0; }
    int all(int __predicate, GRIDSTRIDE_SITE) const {
        const gridstride_vote __vote = __count(__predicate, __file, __line);
        return __vote.true_count == __vote.participant_count;
    }

    // The value that the thread of a rank shows.
    template <class __t>
    static __t* gridstride_shown(unsigned __rank) {
        return static_cast<__t*>(gridstride_current_block()->published[__first() + __rank]);
    }
    // Show a value, look at those of the tile's threads that are there, and hide it.
    template <class __t, class __function>
    void gridstride_look(__t& __value, const char* __file, unsigned __line, __function __look) const {
        void** __place = &gridstride_current_block()->published[gridstride_thread_rank()];
        *__place = &__value;
        sync(__file, __line);
        const unsigned __end = gridstride_thread_count() - __first();
        __look(__end < __size ? __end : __size);
        sync(__file, __line);
        *__place = nullptr;
    }

  private:
    unsigned __meta_rank, __meta_count;

    static unsigned __first() { return gridstride_thread_rank() & ~(__size - 1); }
    gridstride_vote __count(int __predicate, const char* __file, unsigned __line) const {
        gridstride_vote __vote{0, 0};
        gridstride_look(__predicate, __file, __line, [&](unsigned __there) {
            for (unsigned __rank = 0; __rank < __there; ++__rank) {
                const int* __other = gridstride_shown<int>(__rank);
                if (!__other) continue;  // has exited
                ++__vote.participant_count;
                __vote.true_count += *__other != 0;
            }
        });
        return __vote;
    }
};

// ---- both under one name ----

template <unsigned __size, bool __is_large>
struct gridstride_tile_of { typedef gridstride_small_tile<__size> type; };
template <unsigned __size>
struct gridstride_tile_of<__size, true> { typedef gridstride_large_tile<__size> type; };
template <unsigned __size>
using gridstride_tile = typename gridstride_tile_of<__size, (__size > 32)>::type;

template <unsigned __size, class __parent = void>
class thread_block_tile;

template <unsigned __size>
class thread_block_tile<__size, void> : public gridstride_tile<__size> {
    static_assert(__size > 0 && (__size & (__size - 1)) == 0, "the size of a tile is a power of two");
    static_assert(__size <= 1024, "a tile has at most 1024 threads");

  public:
    thread_block_tile(unsigned __number, unsigned __groups) : gridstride_tile<__size>(__number, __groups) {}
};

template <unsigned __size, class __parent>
class thread_block_tile : public thread_block_tile<__size, void> {
  public:
    thread_block_tile(unsigned __number, unsigned __groups) : thread_block_tile<__size, void>(__number, __groups) {}
};

template <unsigned __size>
thread_block_tile<__size, thread_block> tiled_partition(const thread_block& __group) {
    return thread_block_tile<__size, thread_block>(__group.thread_rank() / __size, (__group.num_threads() + __size - 1) / __size);
}
template <unsigned __size, unsigned __parent_size, class __grandparent>
thread_block_tile<__size, thread_block_tile<__parent_size, __grandparent>> tiled_partition(
    const thread_block_tile<__parent_size, __grandparent>& __group) {
    static_assert(__size <= __parent_size, "a tile is not larger than what it is a part of");
    return thread_block_tile<__size, thread_block_tile<__parent_size, __grandparent>>(
        __group.thread_rank() / __size, __parent_size / __size);
}
inline thread_block_tile<1, void> this_thread() { return thread_block_tile<1, void>(0, 1); }

// ---- coalesced threads ----

class coalesced_group : public gridstride_lane_group {
  public:
    explicit coalesced_group(unsigned __lanes, unsigned __number = 0, unsigned __groups = 1)
        : gridstride_lane_group(__lanes, __number, __groups) {}
};

inline coalesced_group coalesced_threads(GRIDSTRIDE_SITE) { return coalesced_group(__activemask(__file, __line)); }

// The threads of a group by a predicate, or by equal labels.
template <class __group>
coalesced_group binary_partition(const __group& __parent, bool __predicate, GRIDSTRIDE_SITE) {
    const gridstride_ballot_result __votes = gridstride_ballot(
        GRIDSTRIDE_COLLECTIVE_GROUP_EXCHANGE, __parent.gridstride_mask(), __predicate, __file, __line);
    return coalesced_group(__predicate ? __votes.true_lanes : __votes.participants & ~__votes.true_lanes, __predicate, 2);
}
template <class __group, class __label>
coalesced_group labeled_partition(const __group& __parent, __label __value, GRIDSTRIDE_SITE) {
    const unsigned __equal = gridstride_match(
        GRIDSTRIDE_COLLECTIVE_GROUP_EXCHANGE, __parent.gridstride_mask(), __value, __file, __line, false);
    // Partitions are numbered by their first threads.
    const unsigned __firsts = gridstride_ballot(
        GRIDSTRIDE_COLLECTIVE_GROUP_EXCHANGE, __parent.gridstride_mask(),
        gridstride_lane() == static_cast<unsigned>(__builtin_ctz(__equal)), __file, __line).true_lanes;
    return coalesced_group(__equal, __popc(__firsts & ((__equal & -__equal) - 1)), __popc(__firsts));
}

// ---- a group whose kind is known at run time ----

class thread_group {
  public:
    thread_group(const thread_block&) : __is_block(true), __lanes(1) {}
    thread_group(const gridstride_lane_group& __group)
        : __is_block(false), __lanes(__group.gridstride_mask(), __group.meta_group_rank(), __group.meta_group_size()) {}

    void sync(GRIDSTRIDE_SITE) const {
        if (__is_block) __syncthreads(__file, __line);
        else __lanes.sync(__file, __line);
    }
    unsigned thread_rank() const { return __is_block ? gridstride_thread_rank() : __lanes.thread_rank(); }
    unsigned num_threads() const { return __is_block ? gridstride_thread_count() : __lanes.num_threads(); }
    unsigned size() const { return num_threads(); }
    const coalesced_group& gridstride_lanes() const { return __lanes; }
    bool gridstride_is_block() const { return __is_block; }

  private:
    bool __is_block;
    coalesced_group __lanes;
};

// Consecutive threads of a block or tile, `size` a power of two of at most 32; of a coalesced group, any size.
inline thread_group tiled_partition(const thread_group& __parent, unsigned __size) {
    const unsigned __number = __parent.thread_rank() / __size;
    const unsigned __groups = (__parent.num_threads() + __size - 1) / __size;
    if (__parent.gridstride_is_block()) return coalesced_group(gridstride_tile_mask(__size), __number, __groups);
    unsigned __mask = 0, __rank = 0;
    for (unsigned __rest = __parent.gridstride_lanes().gridstride_mask(); __rest; __rest &= __rest - 1, ++__rank)
        if (__rank / __size == __number) __mask |= __rest & -__rest;
    return coalesced_group(__mask, __number, __groups);
}
inline coalesced_group tiled_partition(const coalesced_group& __parent, unsigned __size) {
    return tiled_partition(thread_group(__parent), __size).gridstride_lanes();
}

// ---- one thread for all ----

template <class __group, class __function, class... __types>
void invoke_one(const __group& __g, __function&& __call, __types&&... __arguments) {
    if (__g.thread_rank() == 0) std::forward<__function>(__call)(std::forward<__types>(__arguments)...);
}
template <class __group, class __function, class... __types>
auto invoke_one_broadcast(const __group& __g, __function&& __call, __types&&... __arguments)
    -> typename gridstride_without_reference<decltype(__call(std::forward<__types>(__arguments)...))>::type {
    typename gridstride_without_reference<decltype(__call(std::forward<__types>(__arguments)...))>::type __result{};
    if (__g.thread_rank() == 0) __result = std::forward<__function>(__call)(std::forward<__types>(__arguments)...);
    return __g.shfl(__result, 0);
}

// ---- the same as functions of a group ----

template <class __group> void sync(const __group& __g, GRIDSTRIDE_SITE) { __g.sync(__file, __line); }
template <class __group> auto thread_rank(const __group& __g) -> decltype(__g.thread_rank()) { return __g.thread_rank(); }
template <class __group> auto group_size(const __group& __g) -> decltype(__g.size()) { return __g.size(); }

}

#endif
