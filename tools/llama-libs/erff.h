/* An erff that compilers vectorise, for the exact GELU of ggml's CPU backends.
 *
 * build.sh has every file of llama.cpp include this first. ggml's loops over rows
 * (ggml_vec_gelu_erf_f32 and its siblings in ggml-cpu/vec.h) call erff for each
 * element; the C library's is a function of its own, this one has neither branch nor
 * call, so that a loop of it becomes vectors of whatever width the variant has.
 *
 * With a = |x|:
 *
 *   a < 1     erf(x) = x + x P(x^2)             P of degree 6
 *   a >= 1    erf(a) = 1 - 2^-Q(a)              Q of degree 6, fitted up to 4, beyond
 *             2^-(n+f) = 2^-n (1 + f G(f))      which the result is 1 in any case;
 *                                               G of degree 5, |f| <= 1/2
 *
 * P, Q and G are minimax fits by Remez's exchange in 40 digits, of erf(x)/x - 1 by
 * its relative error in erf, of -log2(erfc(a)) by its absolute error in erf, and of
 * (2^-f - 1)/f. Coefficients were rounded to float one after another, each time with
 * the rest fitted anew. Over all floats the error is below 1.35 units in the last
 * place and 8e-8 (1.15 and 7e-8 with fused multiply-add); zeros keep their sign,
 * infinities give 1 and -1, NaN stays NaN. erff_test.cpp holds it to that.
 *
 * Nothing here depends on an element's place: contraction into fused operations is
 * decided by source expressions, alike in a vector and in what is left over.
 */
#ifndef SYNAPSE_ERFF_H
#define SYNAPSE_ERFF_H

/* Before the name is taken, since they declare it. */
#ifdef __cplusplus
#include <cmath>
#include <cstring>
#else
#include <math.h>
#include <string.h>
#endif

static inline float synapse_erff(float x) {
	const float a = __builtin_fabsf(x);

	const float s = a * a;
	float p = 0x1.4771fep-14f;
	p = p * s - 0x1.a3515ep-11f;
	p = p * s + 0x1.53f224p-8f;
	p = p * s - 0x1.b7f71ap-6f;
	p = p * s + 0x1.ce2ce6p-4f;
	p = p * s - 0x1.81273ep-2f;
	p = p * s + 0x1.06eba8p-3f;
	const float below_one = x * p + x;

	const float b = a < 4.0f ? a : 4.0f;
	float q = -0x1.18b968p-12f;
	q = q * b + 0x1.15ee7ap-8f;
	q = q * b - 0x1.01b4b8p-5f;
	q = q * b + 0x1.30700ep-3f;
	q = q * b + 0x1.d76e8ap-1f;
	q = q * b + 0x1.a03fe6p+0f;
	q = q * b + 0x1.0b8c8cp-11f;
	/* Adding 1.5 * 2^23 rounds to an integer, which is then in the sum's low bits. */
	const float shift = 0x1.8p+23f;
	const float shifted = q + shift;
	const float f = q - (shifted - shift);
	float g = 0x1.1bce4ep-13f;
	g = g * f - 0x1.5eceeap-10f;
	g = g * f + 0x1.3b5d14p-7f;
	g = g * f - 0x1.c6afcep-5f;
	g = g * f + 0x1.ebfbaep-3f;
	g = g * f - 0x1.62e43p-1f;
	g = g * f + 1.0f;
	unsigned bits;
	memcpy(&bits, &shifted, sizeof bits);
	bits = (127u << 23) - (bits << 23); /* 2^-n */
	float scale;
	memcpy(&scale, &bits, sizeof scale);
	const float from_one = __builtin_copysignf(1.0f - g * scale, x);

	return a >= 1.0f ? from_one : below_one; /* NaN takes the second */
}

#define erff synapse_erff

#ifdef __cplusplus
/* ggml computes GELU in place. Its loop is compiled into vectors for rows that do
 * not overlap and into single elements for the rest, so the vectors never ran. This
 * overload fits ggml's call better than ggml's own function does, whose x is const,
 * and says that a row over itself is no overlap. build.sh looks that it is taken. */
__attribute__((noinline, unused)) static void ggml_vec_gelu_erf_f32(int n, float *y, float *x) {
	const float sqrt_half = 0.70710678118654752440084436210484f;
	if (x == y) {
		for (int i = 0; i < n; ++i) {
			const float xi = y[i];
			y[i] = 0.5f * xi * (1.0f + erff(xi * sqrt_half));
		}
		return;
	}
	for (int i = 0; i < n; ++i) {
		const float xi = x[i];
		y[i] = 0.5f * xi * (1.0f + erff(xi * sqrt_half));
	}
}
#endif

#endif
