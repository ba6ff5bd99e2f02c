/* The page of zeros is mapped four times and once replaced by a write; then a fifth page is touched. */
#include <stddef.h>
#include <sys/mman.h>

char (*pool)[4096];
volatile char seen;
volatile long spins;

void ready(void) {}

int main(void) {
    pool = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int number = 0; number < 4; number++)
        seen += pool[number][0];
    ready();
    pool[2][0] = 1;
    pool[4][0] = 1;
    for (;;)
        spins++;
}
