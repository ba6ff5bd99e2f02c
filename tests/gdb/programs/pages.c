/* 16 pages, of which one more is touched in each turn. With an argument it waits at the end. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 16
typedef struct { int first; struct { char bytes[3 * 4096]; } inner; } nested;

long page = 4096;
char (*pool)[4096];
char *bytes;
nested object;
volatile int turns;

int turn(int number) {
    pool[number][0] = 1;
    return ++turns;
}

void done(void) {}

int main(int count, char **arguments) {
    (void)arguments;
    pool = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bytes = (char *)pool;
    for (int number = 0; number < 8; number++)
        turn(number);
    done();
    memset(pool, 2, 2 * 4096);
    done();
    if (count > 1) {
        write(STDOUT_FILENO, "w", 1);
        pause();
    }
    return 0;
}
