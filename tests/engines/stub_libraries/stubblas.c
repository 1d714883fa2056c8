/* A BLAS of one function, by the Fortran interface: C = alpha op(A) op(B) + beta C, columns first. */
#include <ctype.h>

void sgemm_(const char *of_a, const char *of_b, const int *m, const int *n, const int *k, const float *alpha,
            const float *a, const int *lda, const float *b, const int *ldb, const float *beta, float *c, const int *ldc) {
    int plain_a = toupper(*of_a) == 'N', plain_b = toupper(*of_b) == 'N';
    for (long j = 0; j < *n; j++)
        for (long i = 0; i < *m; i++) {
            float sum = 0;
            for (long l = 0; l < *k; l++)
                sum += (plain_a ? a[i + l * *lda] : a[l + i * *lda]) * (plain_b ? b[l + j * *ldb] : b[j + l * *ldb]);
            float *at = c + i + j * *ldc;
            *at = *alpha * sum + (*beta == 0 ? 0 : *beta * *at);
        }
}
