// How many threads this process may keep busy.
#ifndef GRIDSTRIDE_RUNTIME_PROCESSORS_H
#define GRIDSTRIDE_RUNTIME_PROCESSORS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace gridstride {

inline bool read_line(const char* path, char* line, int size) {
    FILE* file = fopen(path, "re");
    if (!file) return false;
    const bool is_read = fgets(line, size, file) != nullptr;
    fclose(file);
    return is_read;
}

inline unsigned affinity_count() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) return unsigned(CPU_COUNT(&set));
    const long online = sysconf(_SC_NPROCESSORS_ONLN);  // more processors than the set can hold
    return online > 0 ? unsigned(online) : 1;
}

// Processors that a control group's quota is worth, rounded up; 0 without a quota.
inline unsigned quota_count(const char* quota, const char* period) {
    const long microseconds = atol(quota), length = atol(period);  // "max" reads as 0
    return microseconds > 0 && length > 0 ? unsigned((microseconds + length - 1) / length) : 0;
}

// The smallest quota from this process's control group (version 2) up to the root.
inline unsigned unified_quota_count() {
    char line[512], path[640];
    if (!read_line("/proc/self/cgroup", line, sizeof line) || strncmp(line, "0::", 3) != 0) return 0;
    char* group = line + 3;
    group[strcspn(group, "\n")] = 0;
    unsigned smallest = 0;
    for (;;) {
        char quota[64];
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", strcmp(group, "/") == 0 ? "" : group);
        if (read_line(path, quota, sizeof quota)) {
            const char* period = strchr(quota, ' ');
            const unsigned count = period ? quota_count(quota, period) : 0;
            if (count && (!smallest || count < smallest)) smallest = count;
        }
        char* slash = strrchr(group, '/');
        if (!slash || !*group) return smallest;
        *slash = 0;
    }
}

inline unsigned legacy_quota_count() {
    char quota[64], period[64];
    if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof quota)) return 0;
    if (!read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period)) return 0;
    return quota_count(quota, period);
}

inline unsigned usable_processors() {
    unsigned count = affinity_count();
    const unsigned quotas[] = {unified_quota_count(), legacy_quota_count()};
    for (const unsigned quota : quotas)
        if (quota && quota < count) count = quota;
    return count ? count : 1;
}

}  // namespace gridstride
#endif
