// Holds erff.h to what it says, over every STEP-th float (default 37, 1 for all).
#include "erff.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

const int N = 4099; // no multiple of a vector, so that elements are left over

// As ggml calls it: a loop to vectorise, and one element alone.
__attribute__((noinline)) static void row(int n, float *y, const float *x) {
	for (int i = 0; i < n; i++) y[i] = erff(x[i]);
}
__attribute__((noinline)) static float alone(float x) { return erff(x); }
__attribute__((noinline)) static float gelu_alone(float x) {
	return 0.5f * x * (1.0f + erff(x * 0.70710678118654752440084436210484f));
}

static uint32_t bits_of(float f) {
	uint32_t b;
	memcpy(&b, &f, sizeof b);
	return b;
}
static float float_of(uint32_t b) {
	float f;
	memcpy(&f, &b, sizeof f);
	return f;
}

int main(int argc, char **argv) {
	const double most_ulp = 1.35, most_absolute = 8e-8;
	const uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 10) : 37, infinity = 0x7f800000;
	static float x[N], y[N], apart[N], in_place[N];
	double ulp = 0, absolute = 0;
	long faults = 0;
	for (uint64_t next = 0; next <= infinity;) {
		int n = 0;
		for (; n < N && next <= infinity; next += step) x[n++] = float_of((uint32_t)next);
		row(n, y, x);
		std::copy(x, x + n, in_place);
		ggml_vec_gelu_erf_f32(n, in_place, in_place);
		ggml_vec_gelu_erf_f32(n, apart, x);
		for (int i = 0; i < n; i++) {
			const double want = erf((double)x[i]), error = fabs(y[i] - want);
			const uint32_t nearest = bits_of((float)want);
			const double unit = (double)float_of(nearest + 1) - float_of(nearest);
			absolute = std::max(absolute, error);
			ulp = std::max(ulp, error / unit);
			faults += bits_of(alone(x[i])) != bits_of(y[i]) || bits_of(alone(-x[i])) != (bits_of(y[i]) ^ 1u << 31) || y[i] > 1;
			faults += bits_of(gelu_alone(x[i])) != bits_of(apart[i]) || bits_of(apart[i]) != bits_of(in_place[i]);
		}
	}
	faults += bits_of(alone(0.0f)) != 0 || alone(INFINITY) != 1 || alone(-INFINITY) != -1 || !std::isnan(alone(NAN)) || !std::isnan(alone(-NAN));
	printf("erff: at most %.3f units in the last place and %.3g from erf\n", ulp, absolute);
	if (faults > 0 || ulp > most_ulp || absolute > most_absolute) {
		fprintf(stderr, "erff: allowed are %.2f and %.3g; %ld results depend on their place or sign, or are special and wrong\n", most_ulp, most_absolute, faults);
		return 1;
	}
	return 0;
}
