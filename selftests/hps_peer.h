/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The other end of a connection, in user space: it speaks the protocol of
 * af_hpsock/wire.h as well or as badly as a test wants.
 */
#ifndef HPS_PEER_H
#define HPS_PEER_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "../af_hpsock/wire.h"
#include "hps_test.h"

#define PEER_RECVS	64
#define PEER_SLOT	(64 * 1024)
#define PEER_SHARED	(256 * 1024)

struct peer {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id, *listen_id;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *mem;		/* PEER_RECVS receive slots, one to send from, PEER_SHARED, and
				 * a struct hps_shown
				 */
	struct ibv_mr *word;	/* of that */
	enum {
		PEER_DEEP,
		PEER_ASKS_NOT,	/* no resources for RDMA Reads of ours, nor for atomics */
		PEER_NOT_ASKED,	/* no resources for those of theirs */
	} shallow;
	struct ibv_mw *window;	/* of that, as the other end may invalidate its key */
	struct hps_hello hello;	/* what we said */
	struct hps_hello theirs;
	int reason;		/* enum hps_rej_reason, -1: none in the rejection */
	int version;		/* of who rejected */
	uint32_t tx_seq, rx_seq;
	uint32_t tx_used;	/* sent of what costs a credit */
	uint32_t granted;	/* to us */
	uint32_t rx_data;	/* received of it */
	uint32_t told;		/* granted by us */
	uint32_t tx_from, tx_size;	/* their last BUFFERS */
	uint32_t rx_from, rx_size;	/* our last BUFFERS */
	uint32_t pads;		/* that we asked for and have not received */
	uint32_t rx_shrunk;	/* size from the first of them on */
	uint8_t flags;		/* HPS_FLAG_* of what we send */
	bool sinks;		/* SINKAVAIL sent, modulo 2 */
	uint16_t at;		/* what SINKAVAIL says in hps_hdr.urgent */
	uint16_t urgent;	/* with HPS_FLAG_URGENT */
	bool urgents;		/* URGENT sent, modulo 2 */
	int slot;		/* that holds the last message, -1: none */
	bool gone;		/* disconnected */
};

/* A message received; data points into the slot until the next is received */
struct peer_msg {
	struct hps_hdr hdr;	/* in our byte order */
	const uint8_t *data;
	uint32_t len;		/* bytes behind the header */
};

int peer_service_port(int af);
struct hps_addr peer_service_at(struct hps_addr host);
void peer_hello(struct peer *peer, int src_port, int dst_port);
int peer_connect(struct peer *peer, struct hps_addr from, struct hps_addr to,
		 const void *hello, size_t len);
bool peer_told(const struct peer *peer, int reason);
int peer_dial(struct peer *peer, const struct hps *t, const struct hps_addr *at);
int peer_dial_half(struct peer *peer, const struct hps *t, const struct hps_addr *at);
int peer_listen(struct peer *peer, struct hps_addr at);
int peer_request(struct peer *peer);
int peer_accept(struct peer *peer, const void *hello, size_t len);
int peer_established(struct peer *peer);
int peer_reject(struct peer *peer, const void *data, size_t len);
int peer_raw(struct peer *peer, const void *msg, size_t len);
int peer_send(struct peer *peer, int type, const void *data, uint32_t len);
int peer_buffers(struct peer *peer, uint32_t from, uint32_t size);
int peer_shrink(struct peer *peer, uint32_t size, uint32_t pads);
int peer_srcavail(struct peer *peer, uint64_t addr, uint32_t rkey, uint32_t len);
int peer_srccancel(struct peer *peer, uint32_t count);
int peer_cancelack(struct peer *peer, uint32_t done);
uint8_t *peer_shared(struct peer *peer);
uint32_t peer_share(struct peer *peer);
int peer_lend(struct peer *peer, uint32_t len);
int peer_show(struct peer *peer, uint32_t len);
int peer_sinkavail(struct peer *peer, uint64_t addr, uint32_t rkey, uint32_t len);
int peer_write(struct peer *peer, uint32_t len, uint64_t addr, uint32_t rkey);
int peer_write_imm(struct peer *peer, uint32_t len, uint64_t addr, uint32_t rkey);
const uint8_t *peer_read(struct peer *peer, uint32_t len, uint64_t addr, uint32_t rkey);
int peer_word_at(struct peer *peer, uint64_t addr, uint32_t rkey);
int peer_word(struct peer *peer);
struct hps_shown *peer_shown(struct peer *peer);
int peer_waits(struct peer *peer, uint32_t len);
bool peer_swaps(struct peer *peer, uint64_t addr, uint32_t rkey, uint64_t from);
int peer_written(struct peer *peer, uint32_t len);
int peer_urgent(struct peer *peer, uint32_t ahead);
uint32_t peer_room(struct peer *peer);
int peer_receive(struct peer *peer, struct peer_msg *msg, int ms);
bool peer_gone(struct peer *peer);
void peer_disconnect(struct peer *peer);
void peer_free(struct peer *peer);

#endif /* HPS_PEER_H */
