#!/bin/sh
# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0

# Sets up the network cards of this server. What a card does not have is named and left. `undo` sets back what this
# script has changed since the server booted.
set -u
before=/run/$(basename "$0").before # commands that set a value back, the newest last

try() { "$@" 2>/dev/null || echo "not here: $*"; }

refuse() {
  echo "$*" >&2
  exit 1
}

# KEY COMMAND: the command sets back what KEY names. Only the first one since boot counts.
remember() { grep -qxF "# $1" "$before" 2>/dev/null || printf '%s\n# %s\n' "$2" "$1" >>"$before"; }

undo() {
  [ -e "$before" ] || return 0
  tac "$before" | grep -v '^#' | while read -r command; do
    sh -c "$command" </dev/null 2>/dev/null || echo "not set back: $command"
  done
  rm "$before"
}

put() { # FILE VALUE
  old=$(cat "$1" 2>/dev/null) || {
    echo "not here: $1"
    return
  }
  [ "$old" = "$2" ] && return
  remember "$1" "echo '$old' >'$1'"
  { echo "$2" >"$1"; } 2>/dev/null || echo "not here: $2 in $1"
}

# INTERFACE: the names of cards may change when a server gets another one.
keep_management() {
  { ip route show default; ip -6 route show default; } 2>/dev/null |
    awk -v name="$1" '{ for (i = 1; i < NF; i++) if ($i == "dev" && $(i + 1) == name) found = 1 } END { exit !found }' &&
    refuse "$1: has the default route: it manages this server"
}

link() { # INTERFACE MTU
  [ -e "/sys/class/net/$1" ] || refuse "$1: no such interface"
  [ $(($(cat "/sys/class/net/$1/flags") & 1)) = 1 ] || remember "up $1" "ip link set '$1' down"
  remember "mtu $1" "ip link set '$1' mtu $(cat "/sys/class/net/$1/mtu")"
  ip link set "$1" mtu "$2" up || exit 1
}

no_addresses() { # INTERFACE
  ip -o address show dev "$1" scope global | while read -r _ _ _ address _; do
    remember "$address $1" "ip address add $address dev '$1'"
  done
  ip address flush dev "$1"
  put "/proc/sys/net/ipv6/conf/$1/disable_ipv6" 1
}

feature() { # INTERFACE NAME SHOWN-NAME VALUE
  old=$(ethtool -k "$1" 2>/dev/null | awk -v name="$3:" '$1 == name { print $2 }')
  [ "$old" = "$4" ] && return
  [ -z "$old" ] || remember "$2 $1" "ethtool -K '$1' $2 $old"
  try ethtool -K "$1" "$2" "$4"
}

# OPTION INTERFACE NAME: a number below `Current hardware settings`.
current() { ethtool "$1" "$2" 2>/dev/null | awk -v name="$3:" '/^Current/ { now = 1 } now && $1 == name { print $2 }'; }

channels() { # INTERFACE KIND SHOWN-KIND NUMBER
  old=$(current -l "$1" "$3")
  [ "$old" = "$4" ] && return
  case $old in [0-9]*) remember "$2 $1" "ethtool -L '$1' $2 $old" ;; esac
  try ethtool -L "$1" "$2" "$4"
}

queues() { # INTERFACE NUMBER
  case $(current -l "$1" Combined) in
  [1-9]*) channels "$1" combined Combined "$2" ;;
  *)
    channels "$1" rx RX "$2"
    channels "$1" tx TX "$2"
    ;;
  esac
}

largest_ring() { # INTERFACE
  largest=$(ethtool -g "$1" 2>/dev/null | awk '$1 == "RX:" { print $2; exit }')
  case $largest in
  "" | *[!0-9]*)
    echo "not here: rings of $1"
    return
    ;;
  esac
  old=$(current -g "$1" RX)
  [ "$old" = "$largest" ] && return
  remember "ring $1" "ethtool -G '$1' rx $old"
  try ethtool -G "$1" rx "$largest"
}

# INTERFACE: frames count as queued until the card reports them as sent.
prompt_reports() {
  coalescing=$(ethtool -c "$1" 2>/dev/null)
  old=$(echo "$coalescing" | awk '$1 == "tx-usecs:" { print $2 }')
  case $old in
  "" | *[!0-9]*)
    echo "not here: interrupt moderation of $1"
    return
    ;;
  esac
  if [ "$(echo "$coalescing" | awk '$1 == "Adaptive" { print $5 }')" = on ]; then
    remember "adaptive-tx $1" "ethtool -C '$1' adaptive-tx on"
    try ethtool -C "$1" adaptive-tx off
  fi
  [ "$old" -le 8 ] && return
  remember "tx-usecs $1" "ethtool -C '$1' tx-usecs $old"
  try ethtool -C "$1" tx-usecs 8
}

spread_by_ports() { # INTERFACE
  old=$(ethtool -n "$1" rx-flow-hash udp4 2>/dev/null |
    awk '/^IP SA/ { h = h "s" } /^IP DA/ { h = h "d" } /^L4 bytes 0/ { h = h "f" } /^L4 bytes 2/ { h = h "n" } END { print h }')
  [ "$old" = sdfn ] && return
  [ -z "$old" ] || remember "hash $1" "ethtool -N '$1' rx-flow-hash udp4 $old"
  try ethtool -N "$1" rx-flow-hash udp4 sdfn
}

interrupts() { # INTERFACE PROCESSOR...: in turn
  folder=/sys/class/net/$1/device/msi_irqs
  [ -d "$folder" ] || folder=/sys/class/net/$1/device/../msi_irqs # virtio's device is a child of the card
  if [ ! -d "$folder" ]; then
    echo "not here: interrupts of $1"
    return
  fi
  shift
  for number in $(ls "$folder" | sort -n); do
    put "/proc/irq/$number/smp_affinity_list" "$1"
    set -- "$@" "$1"
    shift
  done
}

huge_pages() { # NODE NUMBER: of 2 MB, at least
  file=/sys/devices/system/node/node$1/hugepages/hugepages-2048kB/nr_hugepages
  [ -e "$file" ] || file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
  [ "$(cat "$file")" -ge "$2" ] && return
  put "$file" "$2"
  [ "$(cat "$file")" -ge "$2" ] || refuse "$(cat "$file") huge pages of $2: memory is in pieces: restart the server"
}

bind_to_vfio() { # PCI-ADDRESS USER
  card=/sys/bus/pci/devices/$1
  [ -e "$card" ] || refuse "$1: no such card"
  for interface in "$card"/net/* "$card"/*/net/*; do keep_management "$(basename "$interface")"; done
  if [ "$(basename "$(readlink "$card/driver")")" != vfio-pci ]; then
    modprobe vfio-pci || exit 1
    release="if [ -e $card/driver ]; then echo $1 >$card/driver/unbind; fi"
    remember "driver $1" "echo >$card/driver_override; $release; echo $1 >/sys/bus/pci/drivers_probe"
    echo vfio-pci >"$card/driver_override"
    sh -c "$release"
    echo "$1" >/sys/bus/pci/drivers_probe
    [ "$(basename "$(readlink "$card/driver")")" = vfio-pci ] || refuse "$1: vfio-pci does not take the card"
  fi
  chown "$2" "/dev/vfio/$(basename "$(readlink "$card/iommu_group")")" || exit 1
}

if [ "${1:-}" = undo ]; then
  undo
  exit
fi
