/* DBS Q-learning on a deterministic world of four actions, in plain C: what benchmarks/tabular.py compares with. */
#include <stdint.h>

static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

/* e^x for x <= 0, by the polynomial of operators/elementary.py. */
static inline double exponential(double x) {
    static const double C[12] = {1.0, 1.0, 0.5000000000000019, 0.1666666666666668, 0.0416666666664881,
        0.008333333333319601, 0.0013888888952314775, 0.00019841269890047113, 2.4801485482328494e-05,
        2.755724091857897e-06, 2.763263963904103e-07, 2.5110037605963777e-08};
    if (x < -708.0) return 0.0;
    double shifted = x * 1.4426950408889634 + 6755399441055744.0, k = shifted - 6755399441055744.0;
    double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10, p = C[11];
    for (int i = 10; i >= 0; i--) p = p * r + C[i];
    union { double number; uint64_t bits; } whole = {shifted}, value = {p};
    value.bits += whole.bits << 52;
    return value.number;
}

long learn(double *q, const int32_t *after, const double *reward, int episodes, int cap, double epsilon, double alpha,
           double gamma, uint64_t seed, int32_t *steps) {
    uint64_t position = mix(seed), increment = mix(seed + 77) | 1, threshold = (uint64_t)(epsilon * 4294967296.0 + 0.5);
    long total = 0;
    for (int episode = 0; episode < episodes; episode++) {
        double beta = (double)(episode + 1) * (episode + 1);
        int state = 0, n = 0, ended = 0;
        while (!ended && n < cap) {
            uint64_t word = mix(position += increment), count = 0, seen = 0, action = 0;
            const double *row = q + 4 * state;
            double top = row[0];
            for (int a = 1; a < 4; a++) top = row[a] > top ? row[a] : top;
            double least = (word >> 32) < threshold ? -1e308 : top;
            for (int a = 0; a < 4; a++) count += row[a] >= least;
            uint64_t wanted = ((word & 0xFFFFFFFFu) * count) >> 32;
            for (int a = 0; a < 4; a++) { seen += row[a] >= least; action += seen <= wanted; }
            int pair = 4 * state + (int)action, target = after[pair];
            ended = target < 0;
            target = ended ? ~target : target;
            double value = 0.0;
            if (!ended) {
                const double *next = q + 4 * target;
                double best = next[0], mass = 0.0, weighted = 0.0;
                for (int a = 1; a < 4; a++) best = next[a] > best ? next[a] : best;
                for (int a = 0; a < 4; a++) {
                    double d = next[a] - best, e = d == 0.0 ? 1.0 : exponential(d * beta);
                    mass += e;
                    weighted += e * d;
                }
                value = best + weighted / mass;
            }
            q[pair] += alpha * (reward[pair] + gamma * value - q[pair]);
            state = target;
            n++;
        }
        total += n;
        steps[episode] = n;
    }
    return total;
}
