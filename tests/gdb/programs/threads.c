/* One thread spins, and another touches and drops the pages of a pool again and again. */
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

#define PAGES 16

char (*pool)[4096];
volatile int begun;
volatile long spins;

void ready(void) {}

void *touch(void *argument) {
    while (!begun)
        ;
    for (int number = 0;; number = (number + 1) % PAGES) {
        pool[number][0] = 1;
        madvise(pool[number], 4096, MADV_DONTNEED);
    }
    return argument;
}

int main(void) {
    pthread_t thread;
    pool = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_create(&thread, NULL, touch, NULL);
    ready();
    begun = 1;
    for (;;)
        spins++;
}
