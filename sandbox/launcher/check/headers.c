// Reads header blocks as the command adapter does, for a test that compares it
// with another decoder: for each its length and its bytes, where a length of all
// ones begins a new connection. The answer is the length of :path, or 255 where
// the block is malformed, and then the path.
#include "../hpack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
	static struct hpack table;
	u32 n;
	hpack_init(&table);
	while (fread(&n, sizeof n, 1, stdin) == 1) {
		char path[MAX_METHOD];
		if (n == ~0U) {
			memset(&table, 0, sizeof table);
			hpack_init(&table);
			continue;
		}
		u8 *block = malloc(n); // exactly as large: what is read beyond it is noticed
		if (n > 0 && (block == NULL || fread(block, n, 1, stdin) != 1))
			return 1;
		bool good = hpack_path(&table, block, n, path);
		putchar(good ? (int)strlen(path) : 255);
		if (good)
			fputs(path, stdout);
		fflush(stdout);
		free(block);
	}
	return 0;
}
