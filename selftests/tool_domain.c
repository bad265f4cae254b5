// SPDX-License-Identifier: GPL-2.0
/*
 * Opens the socket named by its arguments and prints what became of it: the family that
 * a program is told and the kernel's, type, protocol, whether it blocks, whether exec()
 * closes it, and whether its name is one of IPv6.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernel says, past what a preload may. */
static int option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int val = -1;

	syscall(SYS_getsockopt, fd, SOL_SOCKET, name, &val, &len);
	return val;
}

int main(int argc, char **argv)
{
	struct sockaddr_storage name = {};
	socklen_t len = sizeof(name), size = sizeof(int);
	int fd, domain = -1;

	if (argc != 4) {
		fputs("usage: tool_domain DOMAIN TYPE PROTOCOL\n", stderr);
		return 2;
	}
	fd = socket(atoi(argv[1]), strtol(argv[2], NULL, 0), atoi(argv[3]));
	if (fd < 0) {
		puts(strerrorname_np(errno));
		return 1;
	}
	getsockname(fd, (struct sockaddr *)&name, &len);
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
	printf("%d %d %d %d%s%s%s\n", domain, option(fd, SO_DOMAIN), option(fd, SO_TYPE),
	       option(fd, SO_PROTOCOL),
	       fcntl(fd, F_GETFL) & O_NONBLOCK ? " nonblock" : "",
	       fcntl(fd, F_GETFD) & FD_CLOEXEC ? " cloexec" : "",
	       name.ss_family == AF_INET6 ? " inet6" : "");
	return 0;
}
