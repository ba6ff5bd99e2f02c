/* A child of a fork writes to one of four pages, and a huge page is made of small ones. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE (2 << 20)

char *shared, *huge;
volatile int collapsed;

void forked(void) {}
void wrote(void) {}
void done(void) {}

int main(int count, char **arguments) {
    if (count > 1) {
        forked();
        return 0;
    }
    shared = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(shared, 1, 4 * 4096);
    char *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    huge = (char *)(((unsigned long)room + HUGE - 1) & ~(HUGE - 1UL));
    madvise(huge, HUGE, MADV_NOHUGEPAGE);
    memset(huge, 1, HUGE);
    forked();
    int child = fork();
    if (child == 0) {
        shared[4096] = 2;
        wrote();
        execl(arguments[0], arguments[0], "again", (char *)NULL);
        return 1;
    }
    waitpid(child, NULL, 0);
    /* Not before: the kernel's own thread could be faster. */
    madvise(huge, HUGE, MADV_HUGEPAGE);
    collapsed = madvise(huge, HUGE, MADV_COLLAPSE) == 0;
    done();
    return 0;
}
