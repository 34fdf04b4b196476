#!/bin/busybox sh
# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
# The machine's only script. It is told its network by the kernel's command line, and what to run through the first
# virtio serial port: a number and a command on a line; it answers with the number, the exit code, the size, and the output.
/bin/busybox mkdir -p /sbin /usr/bin
/bin/busybox --install -s /usr/bin
export PATH=/bin:/usr/bin LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
ulimit -l unlimited
for m in /modules/*; do
  insmod "$m" || echo "module $m failed"
done
for word in $(cat /proc/cmdline); do
  case $word in netfold.*) export "${word#netfold.}" ;; esac
done
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
ifconfig lo up
ip link set eth0 mtu "$mtu"
ip addr add "$address/32" dev eth0
ip link set eth0 up
ip route add "$gateway" dev eth0 scope link
# rxe obeys the path MTU of its route, which any host can lower by a forged ICMP error: it is locked
ip route add default via "$gateway" dev eth0 src "$address" mtu lock "$mtu"
arp -s "$gateway" "$gateway_mac"
rdma link add rxe0 type rxe netdev eth0
mkdir -p /tmp
# ports come one by one after their driver, and are numbered by the device
until [ -c /dev/vport*p1 ] && [ -c /dev/vport*p2 ]; do sleep 0.05; done
ln -s /dev/vport*p2 /dev/agent
exec 3<>"$(echo /dev/vport*p1)"
echo "ready" >&3
while true; do
  # the port ends its reader where no process listens at the other side
  if ! read -r number command <&3; then
    sleep 0.2
    continue
  fi
  # a child of its own each, so that a server does not hold the next command up
  (
    sh -c "$command" > "/tmp/out.$number" 2>&1 < /dev/null
    code=$?
    until mkdir /tmp/lock 2> /dev/null; do sleep 0.01; done
    { echo "$number $code $(wc -c < "/tmp/out.$number")"; cat "/tmp/out.$number"; } >&3
    rmdir /tmp/lock
    rm "/tmp/out.$number"
  ) &
done
