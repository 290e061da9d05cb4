// What kernels print: kept until the launch ends, then written to C's stdout.
#ifndef GRIDSTRIDE_RUNTIME_OUTPUT_H
#define GRIDSTRIDE_RUNTIME_OUTPUT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

namespace gridstride {

class Output {
public:
    // Formatting happens outside of the lock: a bad format faults, and its thread is abandoned there.
    void print(const char* format, va_list arguments) {
        char line[1024];
        va_list again;
        va_copy(again, arguments);
        const int length = vsnprintf(line, sizeof line, format, arguments);
        if (length >= int(sizeof line)) {
            char* longer = static_cast<char*>(malloc(length + 1ul));
            if (longer) {
                vsnprintf(longer, length + 1ul, format, again);
                append(longer, length);
                free(longer);
            }
        } else if (length > 0) {
            append(line, length);
        }
        va_end(again);
    }

    void flush() {
        Locked locked(lock);
        write();
        free(buffer);
        buffer = nullptr;
        capacity = 0;
    }

private:
    static constexpr unsigned long LIMIT = 1 << 20;  // bytes kept

    Lock lock;
    char* buffer = nullptr;
    unsigned long length = 0, capacity = 0;

    void append(const char* text, unsigned long size) {
        Locked locked(lock);
        if (length + size > capacity && !grow(length + size)) return;
        memcpy(buffer + length, text, size);
        length += size;
        if (length >= LIMIT) write();
    }

    bool grow(unsigned long wanted) {
        const unsigned long larger = maximum(wanted, 2 * capacity);
        char* moved = static_cast<char*>(realloc(buffer, larger));
        if (!moved) return false;
        buffer = moved;
        capacity = larger;
        return true;
    }

    void write() {
        if (length == 0) return;
        fwrite(buffer, 1, length, stdout);
        fflush(stdout);
        length = 0;
    }
};

}  // namespace gridstride
#endif
