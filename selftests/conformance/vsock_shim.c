// SPDX-License-Identifier: GPL-2.0
/*
 * A preload for vsock_test: its AF_VSOCK sockets become stream sockets of the
 * family HPS_DOMAIN, with IPv4 addresses. CID 1 is HPS_ADDR_A, CID 2 is
 * HPS_ADDR_B. The suite's control connection is TCP and stays so.
 *
 * Three differences of AF_VSOCK that the suite takes for granted are bridged
 * here: a refused connect() says ECONNRESET, a port may be bound while old
 * connections use it, and the buffer has options of its own.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/vm_sockets.h>

/* The function that would have been called without us. */
#define NEXT(fn)	((__typeof__(fn) *)dlsym(RTLD_NEXT, #fn))

/* What the suite has set as the size of the buffer; one test, one socket. */
static unsigned long long buffer_size;

static struct in_addr of_cid(unsigned int cid)
{
	const char *text = cid == VMADDR_CID_ANY ? "0.0.0.0" :
			   getenv(cid == 1 ? "HPS_ADDR_A" : "HPS_ADDR_B");
	struct in_addr addr;

	if (!text || !inet_aton(text, &addr)) {
		fprintf(stderr, "vsock_shim: no address of CID %u\n", cid);
		exit(1);
	}
	return addr;
}

static const struct sockaddr *to_ip(const struct sockaddr *addr, struct sockaddr_in *in)
{
	const struct sockaddr_vm *vm = (const void *)addr;

	if (addr->sa_family != AF_VSOCK)
		return addr;
	memset(in, 0, sizeof(*in));
	in->sin_family = AF_INET;
	in->sin_port = htons(vm->svm_port);
	in->sin_addr = of_cid(vm->svm_cid);
	return (struct sockaddr *)in;
}

int socket(int domain, int type, int protocol)
{
	const char *to = getenv("HPS_DOMAIN");
	int fd, on = 1;

	if (domain != AF_VSOCK || !to)
		return NEXT(socket)(domain, type, protocol);
	fd = NEXT(socket)(atoi(to), type, protocol);
	if (fd >= 0)
		NEXT(setsockopt)(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return fd;
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_in in;

	return NEXT(bind)(fd, to_ip(addr, &in), len);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_in in;
	int ret;

	ret = NEXT(connect)(fd, to_ip(addr, &in), len);
	if (ret < 0 && errno == ECONNREFUSED)
		errno = ECONNRESET;
	return ret;
}

int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_vm *vm = (void *)addr;
	struct sockaddr_in in;
	socklen_t size = sizeof(in);
	int ret;

	if (!addr)
		return NEXT(accept)(fd, addr, len);
	ret = NEXT(accept)(fd, (struct sockaddr *)&in, &size);
	if (ret < 0)
		return ret;
	memset(vm, 0, sizeof(*vm));
	vm->svm_family = AF_VSOCK;
	vm->svm_port = ntohs(in.sin_port);
	vm->svm_cid = in.sin_addr.s_addr == of_cid(1).s_addr ? 1 : 2;
	*len = sizeof(*vm);
	return ret;
}

int setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	int size;

	if (level != AF_VSOCK)
		return NEXT(setsockopt)(fd, level, name, val, len);
	if (len != sizeof(buffer_size) || (name != SO_VM_SOCKETS_BUFFER_SIZE &&
					   name != SO_VM_SOCKETS_BUFFER_MAX_SIZE)) {
		errno = ENOPROTOOPT;
		return -1;
	}
	memcpy(&buffer_size, val, sizeof(buffer_size));
	size = buffer_size;
	/* As much is sent before anybody reads, and the receiver need not be the one to keep it. */
	if (name == SO_VM_SOCKETS_BUFFER_MAX_SIZE)
		return NEXT(setsockopt)(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	return NEXT(setsockopt)(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

int getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	if (level != AF_VSOCK)
		return NEXT(getsockopt)(fd, level, name, val, len);
	if (*len != sizeof(buffer_size) || (name != SO_VM_SOCKETS_BUFFER_SIZE &&
					    name != SO_VM_SOCKETS_BUFFER_MAX_SIZE)) {
		errno = ENOPROTOOPT;
		return -1;
	}
	memcpy(val, &buffer_size, sizeof(buffer_size));
	return 0;
}
