"""Pass structures: one by value, and an array of them. Their layout is checked against the compiler's."""

import numpy as np

import gridstride as gs

SOURCE = r"""
struct Particle {
    float3 position;
    float mass;
    double energy;
};

struct World {
    float3 gravity;
    int count;
};

extern "C" __global__ void weigh(Particle* particles, World world)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < world.count) {
        Particle& p = particles[i];
        float3 g = world.gravity;
        p.energy = -(double)p.mass * (g.x * p.position.x + g.y * p.position.y + g.z * p.position.z);
    }
}

// On the GPU, arrays of structures live in plain memory: this says how much of it one takes.
extern "C" __global__ void size_of_particle(int* bytes)
{
    *bytes = sizeof(Particle);
}
"""

# The same members in the same order; align=True puts them where a C++ compiler does.
PARTICLE = np.dtype([("position", np.float32, 3), ("mass", np.float32), ("energy", np.float64)], align=True)
WORLD = np.dtype([("gravity", np.float32, 3), ("count", np.int32)], align=True)


def main() -> None:
    module = gs.RawModule(SOURCE)
    count = 1000
    generator = np.random.default_rng(0)
    particles = np.zeros(count, PARTICLE)
    particles["position"] = generator.random((count, 3))
    particles["mass"] = generator.random(count)
    world = np.array(((0, -9.81, 0), count), WORLD)[()]

    size = gs.zeros(1, dtype=np.int32)
    module.get_function("size_of_particle")((1,), (1,), (size,))
    assert int(size[0]) == PARTICLE.itemsize

    # Not every array library has structured arrays; memory works with all, and takes any pointer's type.
    memory = gs.cuda.alloc(particles.nbytes)
    memory.copy_from_host(particles)
    # A structure by value is one element of a structured array (its [()] or [0]: an np.void).
    module.get_function("weigh")((-(-count // 128),), (128,), (memory, world))
    result = gs.asnumpy(memory).view(PARTICLE)

    expected = 9.81 * particles["mass"].astype(np.float64) * particles["position"][:, 1]
    np.testing.assert_allclose(result["energy"], expected, rtol=1e-6)
    print(
        f"{count} particles of {PARTICLE.itemsize} bytes; the heaviest has {result['energy'].max():.3f} joules"
    )


if __name__ == "__main__":
    main()
