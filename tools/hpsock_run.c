// SPDX-License-Identifier: GPL-2.0
/*
 * hpsock_run: run a program with its TCP sockets made AF_HPSOCK sockets.
 *
 * hpsock_run(1) says what that covers and what it does not. The program is to find all as it
 * was given, but for LD_PRELOAD: its environment, its signals, its descriptors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "family.h"

#define VERSION		"0.1"
#define LIBRARY		"libhpsock_run.so"

/* The name by which this program runs itself, below the library, to see what comes of a socket. */
#define PROBE		"hpsock_run: probe"

/* What that answers: the kernel has the family, has it not, the library was not asked. */
enum { WORKS, NO_FAMILY, NOT_LOADED };

static const char usage[] =
	"usage: hpsock_run [-v] PROGRAM [ARG...]\n"
	"       hpsock_run --help | --version\n"
	"\n"
	"Runs PROGRAM, and the programs it starts, with every TCP socket they open\n"
	"replaced by an AF_HPSOCK socket.\n"
	"\n"
	"  -v, --verbose  say on standard error which library and family are used\n";

static __attribute__((noreturn, format(printf, 2, 3)))
void die(int status, const char *format, ...)
{
	va_list args;

	fputs("hpsock_run: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

/* Below the library. */
static int probe(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), domain = 0;
	socklen_t len = sizeof(domain);

	if (fd < 0) {
		fprintf(stderr, "hpsock_run: socket family %d: %s\n", read_family(),
			strerror(errno));
		return NO_FAMILY;
	}
	/* What the kernel says: the library answers for the program. */
	syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	return domain == AF_INET ? NOT_LOADED : WORKS;
}

/* This program, for who has no /proc as well. */
static const char *own_path(void)
{
	static const char link[] = "/proc/self/exe";

	return access(link, X_OK) ? (const char *)getauxval(AT_EXECFN) : link;
}

/* The library of the build tree lies beside the launcher and goes first. */
static const char *find_library(void)
{
	static char path[PATH_MAX + sizeof(LIBRARY)];
	char *slash = realpath(own_path(), path) ? strrchr(path, '/') : NULL;

	if (slash) {
		memcpy(slash + 1, LIBRARY, sizeof(LIBRARY));
		if (!access(path, R_OK))
			return path;
	}
#ifdef LIBDIR
	if (!access(LIBDIR "/" LIBRARY, R_OK))
		return LIBDIR "/" LIBRARY;
	die(1, LIBRARY " is neither beside the launcher nor in " LIBDIR);
#else
	die(1, LIBRARY " is not beside the launcher");
#endif
}

/*
 * A library already in LD_PRELOAD stays in front: a sanitizer insists on it, and one that
 * wraps socket() as well calls ours next.
 */
static void preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *all = NULL;

	/* The dynamic linker splits it there. */
	if (strpbrk(library, ": "))
		die(1, "LD_PRELOAD cannot carry a path with a space or colon: %s", library);
	if (asprintf(&all, "%s%s%s", others ?: "", others && *others ? ":" : "", library) < 0 ||
	    setenv("LD_PRELOAD", all, 1))
		die(1, "%s", strerror(errno));
	free(all);
}

/* What the probe answers, or how it ended, as a shell tells it. */
static int ask(void)
{
	int status = 0;
	pid_t pid;

	pid = fork();
	if (!pid) {
		execl(own_path(), PROBE, NULL);
		_exit(127);
	}
	if (pid < 0)
		die(1, "%s", strerror(errno));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void check_family(const char *library)
{
	struct sigaction saved, wait = { .sa_handler = SIG_DFL };
	int status;

	/* Who ignores it is not told how a child ends. */
	sigaction(SIGCHLD, &wait, &saved);
	status = ask();
	sigaction(SIGCHLD, &saved, NULL);
	if (status == NO_FAMILY && access(FAMILY_PARAM, F_OK))
		die(1, "module hpsock is not loaded; as root: modprobe hpsock");
	if (status == NO_FAMILY)
		die(1, "hpsock is loaded but refuses a socket here; "
		       "see hpsock_run(1), EXIT STATUS");
	if (status == NOT_LOADED)
		die(1, "%s was not loaded, or something in front of it has a socket() of its own",
		    library);
	if (status != WORKS)
		die(1, "%s cannot be preloaded (status %d)", library, status);
}

static bool is(const char *arg, const char *brief, const char *name)
{
	return arg && (!strcmp(arg, brief) || !strcmp(arg, name));
}

int main(int argc, char **argv)
{
	const char *library;
	bool verbose = false;
	int at = 1;

	if (is(argv[0], PROBE, PROBE))
		return probe();
	if (is(argv[at], "-h", "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (is(argv[at], "--version", "--version")) {
		puts("hpsock_run " VERSION);
		return 0;
	}
	if (is(argv[at], "-v", "--verbose")) {
		verbose = true;
		at++;
	}
	if (is(argv[at], "--", "--"))
		at++;
	else if (argv[at] && argv[at][0] == '-')
		at = argc;
	if (at >= argc) {
		fputs(usage, stderr);
		return 2;
	}

	library = find_library();
	preload(library);
	check_family(library);
	if (verbose)
		fprintf(stderr, "hpsock_run: family %d, %s\n", read_family(), library);
	execvp(argv[at], argv + at);
	die(errno == ENOENT ? 127 : 126, "%s: %s", argv[at], strerror(errno));
}
