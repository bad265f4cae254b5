// SPDX-License-Identifier: GPL-2.0
/*
 * smc_ueid: give SMC a user EID.
 *
 * Without one both ends share, SMC-Rv2 (the version that routes, and the only
 * one that takes an rxe device over veth) falls back to TCP in silence.
 * "smcr ueid add" does the same, but smc-tools is not in Debian.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/smc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct message {
	struct nlmsghdr nlh;
	struct genlmsghdr genl;
	char attrs[4096];
};

static void die(const char *what, int err)
{
	fprintf(stderr, "smc_ueid: %s: %s\n", what, strerror(err));
	exit(1);
}

static void init_message(struct message *msg, __u16 type, __u8 cmd, __u8 version)
{
	memset(msg, 0, sizeof(*msg));
	msg->nlh.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	msg->nlh.nlmsg_type = type;
	msg->nlh.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	msg->genl.cmd = cmd;
	msg->genl.version = version;
}

static void put_string(struct message *msg, __u16 type, const char *s)
{
	struct nlattr *nla = (void *)((char *)msg + NLMSG_ALIGN(msg->nlh.nlmsg_len));

	nla->nla_type = type;
	nla->nla_len = NLA_HDRLEN + strlen(s) + 1;
	memcpy((char *)nla + NLA_HDRLEN, s, strlen(s) + 1);
	msg->nlh.nlmsg_len = NLMSG_ALIGN(msg->nlh.nlmsg_len) + NLA_ALIGN(nla->nla_len);
}

static int reply_error(const struct message *msg)
{
	const struct nlmsgerr *err = NLMSG_DATA(&msg->nlh);

	return msg->nlh.nlmsg_type == NLMSG_ERROR ? -err->error : 0;
}

/* Sends @msg and leaves the answer in its place. Returns an errno. */
static int talk(int fd, struct message *msg)
{
	if (send(fd, msg, msg->nlh.nlmsg_len, 0) < 0)
		die("send", errno);
	if (recv(fd, msg, sizeof(*msg), 0) < 0)
		die("recv", errno);
	return reply_error(msg);
}

static __u16 find_attr_u16(const struct message *msg, __u16 type)
{
	const char *p = msg->attrs;
	const char *end = (const char *)msg + msg->nlh.nlmsg_len;
	const struct nlattr *nla;

	for (; p + NLA_HDRLEN <= end; p += NLA_ALIGN(nla->nla_len)) {
		nla = (const void *)p;
		if (nla->nla_len < NLA_HDRLEN)
			break;
		if (nla->nla_type == type)
			return *(const __u16 *)(p + NLA_HDRLEN);
	}
	return 0;
}

/* The number that generic netlink gave the family of SMC when it was loaded. */
static __u16 smc_family(int fd)
{
	struct message msg;
	__u16 id;
	int err;

	init_message(&msg, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	msg.nlh.nlmsg_flags = NLM_F_REQUEST;
	put_string(&msg, CTRL_ATTR_FAMILY_NAME, SMC_GENL_FAMILY_NAME);
	err = talk(fd, &msg);
	if (err)
		die(SMC_GENL_FAMILY_NAME, err);
	id = find_attr_u16(&msg, CTRL_ATTR_FAMILY_ID);
	if (!id)
		die(SMC_GENL_FAMILY_NAME, ENOENT);
	return id;
}

int main(int argc, char **argv)
{
	char eid[SMC_MAX_EID_LEN + 1];
	struct message msg;
	int err;
	int fd;

	if (argc != 2 || strlen(argv[1]) > SMC_MAX_EID_LEN) {
		fputs("usage: smc_ueid EID\n", stderr);
		return 2;
	}
	/* The kernel wants it filled up with blanks. */
	snprintf(eid, sizeof(eid), "%-*s", SMC_MAX_EID_LEN, argv[1]);

	fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	if (fd < 0)
		die("socket", errno);
	init_message(&msg, smc_family(fd), SMC_NETLINK_ADD_UEID,
		     SMC_GENL_FAMILY_VERSION);
	put_string(&msg, SMC_NLA_EID_TABLE_ENTRY, eid);
	err = talk(fd, &msg);
	if (err && err != EEXIST)
		die("SMC_NETLINK_ADD_UEID", err);
	close(fd);
	return 0;
}
