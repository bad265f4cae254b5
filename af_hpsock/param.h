/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_PARAM_H
#define HPS_PARAM_H

#include <linux/types.h>

extern unsigned int hps_family;
extern unsigned int hps_service_port;
extern unsigned int hps_buf_first;
extern unsigned int hps_buf_size;
extern unsigned int hps_window;
extern unsigned int hps_quota;
extern unsigned int hps_signal_every;
extern unsigned int hps_mem_max_kb;
extern unsigned int hps_fin_timeout;
extern unsigned int hps_orphan_timeout;

#endif /* HPS_PARAM_H */
