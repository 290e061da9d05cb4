// Runs some of execution_kernels.cpp through the runtime without Python, for processors that are emulated.
// Prints "name code" for every launch, and "wrong" after those whose results are not as expected.
#include <gridstride_cpu/abi.h>
#include <launch_abi.h>

#include <stdio.h>
#include <string.h>

extern "C" const gridstride_library_table gridstride_library;
extern "C" void gridstride_bind(const gridstride_services*);
extern "C" const gridstride_services* gridstride_runtime_services();
extern "C" int gridstride_cpu_launch(
    void*, const gridstride_configuration*, const void*, unsigned long, unsigned long long);
extern "C" void gridstride_set_launch_timeout(double);

static gridstride_function find(const char* name) {
    const gridstride_kernel* kernel = gridstride_library.kernels;
    while (strcmp(kernel->name, name) != 0) ++kernel;
    return {kernel, name, *gridstride_library.static_shared_bytes, "kernels.cu"};
}

static void launch(const char* name, unsigned grid, unsigned block, const void* arguments, unsigned flags = 0) {
    gridstride_function function = find(name);
    const gridstride_configuration configuration = {{grid, 1, 1}, {block, 1, 1}, 0, flags};
    printf("%s %d\n", name, gridstride_cpu_launch(&function, &configuration, arguments, 64, 0));
}

static void expect(bool is_right) {
    if (!is_right) printf("wrong\n");
}

static void rotate() {
    static int in[9][256], out[9][256];
    for (int i = 0; i < 9 * 256; ++i) in[i / 256][i % 256] = i;
    const struct { const void *in, *out; int rounds; } arguments = {in, out, 7};
    launch("rotate", 9, 256, &arguments);
    for (int i = 0; i < 9 * 256; ++i) expect(out[i / 256][i % 256] == in[i / 256][(i + 7) % 256]);
}

static void shuffle() {
    static int in[80], out[4][80];
    for (int i = 0; i < 80; ++i) in[i] = i + 1;
    const struct { const void *in, *out; unsigned mask; int argument, width, exited; } arguments = {in, out, ~0u, 1, 32, 0};
    launch("shuffles<int>", 1, 80, &arguments);
    for (int i = 0; i < 80; ++i) expect(out[0][i] == i / 32 * 32 + 2);
    expect(out[1][0] == 1 && out[1][40] == 40 && out[2][0] == 2 && out[2][79] == 0 && out[3][1] == 1);
}

static void synchronize_grid() {
    static int values[700];
    for (int i = 0; i < 700; ++i) values[i] = i;
    const struct { void* values; int rounds; } arguments = {values, 5};
    launch("grid_rotate", 7, 100, &arguments, 1);
    for (int i = 0; i < 700; ++i) expect(values[i] == (i + 5) % 700);
}

static void preempt() {
    static int flags[5];
    const void* argument = flags;
    launch("volatile_chain", 1, 5, &argument);
    for (int flag : flags) expect(flag == 1);
}

static void fail() {
    static int done;
    const struct { unsigned long address; unsigned block, thread; int* done; } store = {0x5000, 3, 37, &done};
    launch("store_at", 400, 64, &store);
    static int out[8];
    const void* argument = out;
    launch("overflow_stack", 3, 8, &argument);
    const int how = 0;
    launch("diverge", 1, 64, &how);
    const struct { int how, at; } trap = {2, 5};
    launch("stop", 4, 64, &trap);
    launch("wait_for_ever", 2, 64, &argument);
}

int main() {
    setvbuf(stdout, nullptr, _IONBF, 0);  // what was printed before a crash is wanted
    gridstride_bind(gridstride_runtime_services());
    gridstride_set_launch_timeout(0.5);
    rotate();
    shuffle();
    synchronize_grid();
    preempt();
    fail();
    rotate();
}
