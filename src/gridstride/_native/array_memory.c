/* What a kernel remembers of its calls, by the hash of their keys. */
#include "native.h"

#include <stdlib.h>

enum { SLOTS = 512, TRIES = 4 };

struct array_memory {
    struct array_record *records[SLOTS];
    uint64_t met[SLOTS]; /* hashes of calls that were made once */
    unsigned turn;
};

/* Return a held record, or null. */
struct array_record *find_array_record(const struct array_memory *memory, const struct array_call *call)
{
    if (memory == NULL)
        return NULL;
    for (unsigned k = 0; k < TRIES; ++k) {
        struct array_record *record = memory->records[(call->hash + k) % SLOTS];
        if (record != NULL && is_record_of(record, call)) {
            ++record->references;
            return record;
        }
    }
    return NULL;
}

void keep_array_record(struct array_memory *memory, struct array_record *record)
{
    struct array_record **slot = NULL;
    for (unsigned k = 0; k < TRIES; ++k) {
        struct array_record **one = &memory->records[(record->hash + k) % SLOTS];
        if (*one == NULL || ((*one)->hash == record->hash && (*one)->key_size == record->key_size)) {
            slot = one;
            break;
        }
    }
    if (slot == NULL)
        slot = &memory->records[(record->hash + memory->turn++ % TRIES) % SLOTS];
    struct array_record *replaced = *slot;
    *slot = record;
    if (replaced != NULL)
        release_array_record(replaced);
}

/* Return whether such a call was made before: many are made only once, and those are not worth a record. The memory is
 * made where there is none yet. */
int was_met(struct array_memory **made, const struct array_call *call)
{
    if (*made == NULL)
        *made = calloc(1, sizeof **made);
    struct array_memory *memory = *made;
    if (memory == NULL)
        return 0;
    uint64_t *slot = NULL;
    for (unsigned k = 0; k < TRIES; ++k) {
        uint64_t *one = &memory->met[(call->hash + k) % SLOTS];
        if (*one == call->hash)
            return 1;
        if (*one == 0 && slot == NULL)
            slot = one;
    }
    if (slot == NULL)
        slot = &memory->met[(call->hash + memory->turn++ % TRIES) % SLOTS];
    *slot = call->hash;
    return 0;
}

int visit_array_memory(const struct array_memory *memory, visitproc visit, void *arg)
{
    for (int k = 0; memory != NULL && k < SLOTS; ++k) {
        int stopped = memory->records[k] == NULL ? 0 : visit_array_record(memory->records[k], visit, arg);
        if (stopped)
            return stopped;
    }
    return 0;
}

void free_array_memory(struct array_memory *memory)
{
    for (int k = 0; memory != NULL && k < SLOTS; ++k)
        if (memory->records[k] != NULL)
            release_array_record(memory->records[k]);
    free(memory);
}
