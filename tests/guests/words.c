/* words PID: every raw word that the kernel shows of a process, a line a page:
 *
 *     ADDRESS ENTRY FLAGS COUNT CGROUP
 *
 * in hexadecimal: the entry of /proc/PID/pagemap, and of its frame the words of /proc/kpageflags, /proc/kpagecount and
 * /proc/kpagecgroup. "-": the file has no word there, or may not be read, or there is no frame. The words are read one at
 * a time and in the byte order of the machine, and nothing is decoded but bit 63 (present) and bits 0 to 54 (the frame).
 */
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void print_word(int file, uint64_t index, uint64_t *value)
{
	uint64_t word;

	if (pread(file, &word, sizeof word, (off_t)(index * sizeof word)) != (ssize_t)sizeof word) {
		printf(" -");
		return;
	}
	printf(" %llx", (unsigned long long)word);
	if (value)
		*value = word;
}

int main(int argc, char **argv)
{
	const char *const of_frames[] = { "/proc/kpageflags", "/proc/kpagecount", "/proc/kpagecgroup" };
	int frames[3], entries, file;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char path[64], line[8192];
	FILE *maps;

	if (argc != 2) {
		fprintf(stderr, "usage: words PID\n");
		return 2;
	}
	snprintf(path, sizeof path, "/proc/%s/pagemap", argv[1]);
	entries = open(path, O_RDONLY);
	snprintf(path, sizeof path, "/proc/%s/maps", argv[1]);
	maps = fopen(path, "r");
	if (entries < 0 || !maps) {
		perror(path);
		return 1;
	}
	for (file = 0; file < 3; file++)
		frames[file] = open(of_frames[file], O_RDONLY);
	while (fgets(line, sizeof line, maps)) {
		char *rest;
		uint64_t address = strtoull(line, &rest, 16), end;

		if (*rest != '-')
			continue;
		end = strtoull(rest + 1, NULL, 16);
		for (; address < end; address += page) {
			uint64_t entry = 0, frame;

			printf("%llx", (unsigned long long)address);
			print_word(entries, address / page, &entry);
			frame = entry & (((uint64_t)1 << 55) - 1);
			for (file = 0; file < 3; file++) {
				if (entry >> 63 && frame)
					print_word(frames[file], frame, NULL);
				else
					printf(" -");
			}
			printf("\n");
		}
	}
	return 0;
}
