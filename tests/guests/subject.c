/* subject FOLDER: a process with memory in every state that this kernel and its rights can make. It says what it made, a line an area:
 *
 *     area NAME START PAGES STATE KIND
 *
 * START in hexadecimal, STATE and KIND in pmdb's words ("-": no one kind). What cannot be made is said as "cannot NAME REASON". Then it says
 * "ready", and stands still until its standard input ends. Its files are made in FOLDER and deleted at once.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From the kernel's include/uapi/asm-generic/mman-common.h: the C library may be older than the kernel. */
#define ADVICE_PAGEOUT 21
#define ADVICE_COLLAPSE 25
#define ADVICE_HWPOISON 100
#define ADVICE_SOFT_OFFLINE 101
#define ADVICE_GUARD_INSTALL 102

enum { COUNT = 1024 };

static size_t page;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *map(size_t pages, int flags, int file)
{
	char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, flags, file, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* New memory of small pages, which stay small: khugepaged would collapse them during the comparison. */
static char *small(size_t pages, int flags, int file)
{
	char *memory = map(pages, flags, file);

	if (!memory)
		fail("mmap");
	madvise(memory, pages * page, MADV_NOHUGEPAGE);
	return memory;
}

static char *anonymous(size_t pages)
{
	return small(pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Each page with other bytes, so that none is merged that was not offered. */
static void write_pages(char *memory, size_t pages)
{
	static uint32_t number;
	size_t at;

	for (at = 0; at < pages; at++) {
		number++;
		memcpy(memory + at * page, &number, sizeof number);
	}
}

static void read_pages(const char *memory, size_t pages)
{
	size_t at;

	for (at = 0; at < pages; at++)
		(void)*(const volatile char *)(memory + at * page);
}

static void area(const char *name, const char *memory, size_t pages, const char *state, const char *kind)
{
	printf("area %s %llx %zu %s %s\n", name, (unsigned long long)(uintptr_t)memory, pages, state, kind);
}

static void cannot(const char *name, const char *reason)
{
	printf("cannot %s %s\n", name, reason);
}

static int file_in(const char *folder, size_t pages)
{
	char path[4096];
	char *bytes = malloc(page);
	size_t at;
	int file;

	snprintf(path, sizeof path, "%s/subject-XXXXXX", folder);
	file = mkstemp(path);
	if (file < 0 || !bytes)
		fail(path);
	unlink(path);
	for (at = 0; at < pages; at++) {
		memset(bytes, (int)at + 1, page);
		if (write(file, bytes, page) != (ssize_t)page)
			fail(path);
	}
	/* No page is under writeback while the words are read. */
	fsync(file);
	free(bytes);
	return file;
}

static unsigned long long number_in(const char *path)
{
	unsigned long long number = 0;
	FILE *file = fopen(path, "r");

	if (file) {
		if (fscanf(file, "%llu", &number) != 1)
			number = 0;
		fclose(file);
	}
	return number;
}

static void plain_memory(void)
{
	char *memory = anonymous(3 * COUNT);

	write_pages(memory, 2 * COUNT);
	area("written", memory, 2 * COUNT, "present", "anonymous");
	area("untouched", memory + 2 * COUNT * page, COUNT, "untouched", "anonymous");

	memory = anonymous(COUNT / 2);
	read_pages(memory, COUNT / 2);
	area("zero", memory, COUNT / 2, "present", "zero");

	memory = anonymous(64);
	write_pages(memory, 64);
	madvise(memory + 16 * page, 32 * page, MADV_DONTNEED);
	area("given_back", memory + 16 * page, 32, "untouched", "anonymous");
	mprotect(memory, 16 * page, PROT_NONE);
	area("no_access", memory, 16, "present", "anonymous");

	memory = anonymous(32);
	if (mlock(memory, 32 * page) == 0)
		area("locked", memory, 32, "present", "anonymous");
	else
		cannot("locked", strerror(errno));
}

static void shared_memory(void)
{
	char *memory = small(COUNT, MAP_SHARED | MAP_ANONYMOUS, -1);

	write_pages(memory, COUNT / 2);
	area("shared", memory, COUNT / 2, "present", "shmem");
}

static void files(const char *folder)
{
	int file = file_in(folder, COUNT);
	char *whole = small(COUNT, MAP_SHARED, file), *copied = small(COUNT, MAP_PRIVATE, file);
	size_t at;

	read_pages(whole, COUNT);
	area("file", whole, COUNT, "present", "file");
	read_pages(copied, COUNT);
	for (at = 0; at < COUNT; at += 2)
		write_pages(copied + at * page, 1);
	area("copied", copied, 1, "present", "private_copy");
	area("not_copied", copied + page, 1, "present", "file");
}

static void huge_memory(void)
{
	size_t bytes = number_in("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
	char *memory, *aligned;

	/* 64 MiB at most: on some kernels it is 512 MiB. */
	if (!bytes || bytes > ((size_t)64 << 20)) {
		cannot("huge", "no huge pages of that size");
		return;
	}
	memory = map(3 * bytes / page, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!memory)
		fail("mmap");
	aligned = (char *)(((uintptr_t)memory + bytes - 1) / bytes * bytes);
	madvise(aligned, 2 * bytes, MADV_HUGEPAGE);
	write_pages(aligned, 2 * bytes / page);
	madvise(aligned, 2 * bytes, ADVICE_COLLAPSE);
	area("huge", aligned, bytes / page, "present", "anonymous");
	/* Split, so that its pages are mapped one by one; khugepaged must not collapse it again. */
	madvise(aligned + bytes, bytes, MADV_NOHUGEPAGE);
	madvise(aligned + bytes, page, MADV_DONTNEED);
	area("torn", aligned + bytes, 1, "untouched", "anonymous");
	area("torn_rest", aligned + bytes + page, bytes / page - 1, "present", "anonymous");
}

static void pool_memory(void)
{
	static const unsigned sizes[] = { 64, 1024, 2048, 16384, 32768 };
	size_t at;

	for (at = 0; at < sizeof sizes / sizeof *sizes; at++) {
		char path[128], name[32];
		size_t bytes = (size_t)sizes[at] << 10;
		int log = __builtin_ctzll(bytes);
		char *memory;

		snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-%ukB/free_hugepages", sizes[at]);
		if (number_in(path) < 2)
			continue;
		snprintf(name, sizeof name, "pool_%ukB", sizes[at]);
		memory = map(2 * bytes / page, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | log << 26, -1);
		if (!memory) {
			cannot(name, strerror(errno));
			continue;
		}
		write_pages(memory, 1);
		area(name, memory, bytes / page, "present", "hugetlb");
		snprintf(name, sizeof name, "pool_%ukB_rest", sizes[at]);
		area(name, memory + bytes, bytes / page, "untouched", "hugetlb");
	}
}

static void guard_page(void)
{
	char *memory = anonymous(3);

	write_pages(memory, 3);
	if (madvise(memory + page, page, ADVICE_GUARD_INSTALL) == 0)
		area("guard", memory + page, 1, "guard", "-");
	else
		cannot("guard", strerror(errno));
}

/* The number of present pages: bit 63. mincore(2) would also count pages in the swap cache. */
static size_t present(const char *memory, size_t pages)
{
	int file = open("/proc/self/pagemap", O_RDONLY);
	size_t at, count = 0;

	if (file < 0)
		fail("/proc/self/pagemap");
	for (at = 0; at < pages; at++) {
		uint64_t entry;
		off_t place = (off_t)(((uintptr_t)memory / page + at) * sizeof entry);

		if (pread(file, &entry, sizeof entry, place) != (ssize_t)sizeof entry)
			fail("/proc/self/pagemap");
		count += entry >> 63;
	}
	close(file);
	return count;
}

static void swapped_memory(void)
{
	size_t pages = 256, at;
	char *memory;

	/* Only the heading: there is no swap area. */
	FILE *file = fopen("/proc/swaps", "r");
	char line[512];
	int areas = -1;
	while (file && fgets(line, sizeof line, file))
		areas++;
	if (file)
		fclose(file);
	if (areas < 1) {
		cannot("swapped", "no swap is on");
		return;
	}
	memory = anonymous(pages);
	write_pages(memory, pages);
	/* Pages that were busy the first time may go the next. */
	for (at = 0; at < 1000; at++) {
		madvise(memory, pages * page, ADVICE_PAGEOUT);
		if (present(memory, pages) == 0)
			break;
		usleep(10000);
	}
	if (present(memory, pages) > 0)
		cannot("swapped", "the kernel keeps some of it in memory");
	else
		area("swapped", memory, pages, "swapped", "anonymous");
}

static void merged_memory(void)
{
	size_t pages = 64, at;
	unsigned long long before = number_in("/sys/kernel/mm/ksm/pages_sharing");
	char *memory;

	if (number_in("/sys/kernel/mm/ksm/run") != 1) {
		cannot("merged", "samepage merging is off");
		return;
	}
	memory = anonymous(pages);
	memset(memory, 0x5a, pages * page);
	if (madvise(memory, pages * page, MADV_MERGEABLE) != 0) {
		cannot("merged", strerror(errno));
		return;
	}
	/* All but the one that the others are merged with. */
	for (at = 0; at < 3000; at++) {
		if (number_in("/sys/kernel/mm/ksm/pages_sharing") >= before + pages - 1) {
			area("merged", memory, pages, "present", "ksm");
			return;
		}
		usleep(10000);
	}
	cannot("merged", "nothing was merged in 30 seconds");
}

static void carry_on(int number)
{
	(void)number;
}

static void failed_memory(void)
{
	char *memory = anonymous(8);

	if (!getenv("PMDB_POISONS_MEMORY")) {
		cannot("failed", "not asked for");
		return;
	}
	/* Newer kernels signal the calling process at once, and not at its next access. */
	signal(SIGBUS, carry_on);
	write_pages(memory, 8);
	if (madvise(memory + 2 * page, page, ADVICE_HWPOISON) == 0)
		area("failed", memory + 2 * page, 1, "hwpoison", "-");
	else
		cannot("failed", strerror(errno));
	if (madvise(memory + 4 * page, page, ADVICE_SOFT_OFFLINE) == 0)
		area("soft_offline", memory + 4 * page, 1, "present", "anonymous");
	else
		cannot("soft_offline", strerror(errno));
}

static void device_memory(void)
{
	const char *path = getenv("SUBJECT_DEVICE");
	int file = path ? open(path, O_RDWR | O_SYNC) : -1;
	char *memory = file < 0 ? NULL : map(2, MAP_SHARED, file);

	if (!memory) {
		cannot("device", path ? strerror(errno) : "no device was named");
		return;
	}
	area("device", memory, 2, "pfn_mapped", "device_memory");
}

/* A child that shares most of an area and has copied some of it, until this process ends. */
static void forked_memory(void)
{
	char *memory = anonymous(128);
	int ends[2];
	char byte = 0;

	write_pages(memory, 128);
	if (pipe(ends) != 0)
		fail("pipe");
	switch (fork()) {
	case -1:
		fail("fork");
		break;
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		write_pages(memory, 32);
		if (write(ends[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ends[0], &byte, 1) != 1)
		fail("the child");
	area("forked", memory, 128, "present", "anonymous");
}

int main(int argc, char **argv)
{
	char byte;

	if (argc != 2) {
		fprintf(stderr, "usage: subject FOLDER\n");
		return 2;
	}
	page = (size_t)sysconf(_SC_PAGESIZE);
	/* The areas so far are announced even if making the next one kills this process. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* First of all: the child must not share later areas. */
	forked_memory();
	plain_memory();
	shared_memory();
	files(argv[1]);
	huge_memory();
	pool_memory();
	guard_page();
	swapped_memory();
	merged_memory();
	failed_memory();
	device_memory();
	printf("ready\n");
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
