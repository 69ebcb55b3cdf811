// An HTTP request by a program that is linked statically, with its own resolver.
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found;
	if (argc != 2)
		return 2;
	int err = getaddrinfo(argv[1], "80", &hints, &found);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], gai_strerror(err));
		return 1;
	}
	char text[4096];
	int fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
	if (connect(fd, found->ai_addr, found->ai_addrlen)) {
		perror("connect");
		return 1;
	}
	int n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", argv[1]);
	if (write(fd, text, n) != n)
		return 1;
	while ((n = read(fd, text, sizeof text)) > 0)
		fwrite(text, 1, n, stdout);
	return n < 0;
}
