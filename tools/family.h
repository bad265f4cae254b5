/* SPDX-License-Identifier: GPL-2.0 */
/* The number of the family, as the module tells it. */
#ifndef FAMILY_H
#define FAMILY_H

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/hpsock.h>

#define FAMILY_PARAM	"/sys/module/hpsock/parameters/family"

static inline int read_family(void)
{
	char buf[16];
	ssize_t n, i;
	int fd, nr = 0;

	fd = open(FAMILY_PARAM, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return AF_HPSOCK;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	for (i = 0; i < n && buf[i] >= '0' && buf[i] <= '9'; i++)
		nr = 10 * nr + buf[i] - '0';
	return nr > 0 ? nr : AF_HPSOCK;
}

#endif
