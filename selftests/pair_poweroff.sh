#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# On both of two machines: pair_poweroff.c.
cd "$(dirname "$0")" || exit 1
export HPS_ADDR_A=10.4.0.1 HPS_ADDR_B=10.4.0.2 HPS_ADDR6_A=fd04::1 HPS_ADDR6_B=fd04::2
exec build/pair_poweroff
