/* Allocates and frees at random, and writes what malloc itself counts. It is linked with the C library of one suite alone, without
   that library's headers and start code: the linker then chooses that library's versions of the functions. Its input is a line
   "THREADS BLOCKS", and then a line each time it shall give memory back and count again. */
typedef __SIZE_TYPE__ size;
struct mallinfo { int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; };
extern void *malloc(size), *memset(void *, int, size), free(void *), _exit(int);
extern struct mallinfo mallinfo(void);
extern int malloc_trim(size), snprintf(char *, size, const char *, ...), prctl(int, ...), pause(void), sched_yield(void);
extern int pthread_create(size *, void *, void *(*)(void *), void *);
extern long read(int, void *, size), write(int, const void *, size);

static unsigned blocks, done;

/* Blocks of 24 to some thousand bytes, of which one in five stays. */
static void allocate(unsigned state)
{
    void **all = malloc(blocks * sizeof *all);
    for (unsigned i = 0; i < blocks; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        size bytes = 24 + state % 3000;
        all[i] = memset(malloc(bytes), 7, bytes);
    }
    for (unsigned i = 0; i < blocks; i++)
        if (i / 40 % 5)
            free(all[i]);
}

static void *thread(void *number)
{
    allocate(2463534242u + (size)number);
    __sync_fetch_and_add(&done, 1);
    for (;;)
        pause();
}

static unsigned number(char **text)
{
    unsigned sum = 0;
    while (**text >= '0' && **text <= '9')
        sum = 10 * sum + *(*text)++ - '0';
    ++*text;
    return sum;
}

/* Neither of them allocates. */
static void count(void)
{
    char line[128];
    struct mallinfo info = mallinfo();
    write(1, line, snprintf(line, sizeof line, "%d %d %d\n", info.arena, info.fordblks, info.fsmblks));
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
    char line[64] = "", *at = line;
    size handle;
    /* PR_SET_THP_DISABLE: huge pages would be given back only once they are split. PR_SET_PDEATHSIG. */
    prctl(41, 1L, 0L, 0L, 0L);
    prctl(1, 9L, 0L, 0L, 0L);
    if (read(0, line, sizeof line - 1) <= 0)
        _exit(1);
    unsigned threads = number(&at);
    blocks = number(&at);
    for (size i = 1; i <= threads; i++)
        if (pthread_create(&handle, 0, thread, (void *)i))
            _exit(2);
    while (*(volatile unsigned *)&done < threads)
        sched_yield();
    if (!threads)
        allocate(1);
    /* What writing a number allocates is there before the first count that holds. */
    count();
    while (read(0, line, sizeof line) > 0) {
        count();
        if (read(0, line, sizeof line) <= 0)
            break;
        malloc_trim(0);
        count();
    }
    _exit(0);
}
