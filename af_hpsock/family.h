/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_FAMILY_H
#define HPS_FAMILY_H

int hps_family_register(void);
void hps_family_unregister(void);

#endif /* HPS_FAMILY_H */
