// SPDX-License-Identifier: GPL-2.0

// What each counter means, in one line. A counter that is not here is shown
// without a meaning: the module may be newer than this command.
//
// Neighbours: module/stats.h (the counters).

package proc

import "strings"

var meanings = map[string]string{
	"offers":          "sockets offered for joining by the end that connects",
	"offers_expired":  "offers that nobody matched in time: the other end is remote, or not under the policy",
	"offers_pending":  "offers that nobody matched yet (now)",
	"joins":           "connections joined",
	"joined":          "connections joined now",
	"pairs_held":      "connections' pair objects in memory now",
	"parts":           "ends that left the ring while alive and went on over TCP",
	"ring_bytes":      "bytes sent through rings",
	"wakeups_sent":    "times a sleeping reader or writer was woken",
	"wakeups_avoided": "times nobody had to be woken",
	"spins_hit":       "busy polls that found data",
	"spins_miss":      "busy polls that ended without data",
	"spills":          "ring bytes moved to the TCP queue",
	"rings":           "rings allocated now",
	"ring_memory":     "bytes of ring memory held now",
}

var refusals = map[string]string{
	"state":         "the socket is not an established plain TCP connection",
	"ulp":           "the socket has another upper-layer protocol (kTLS), or is joined already",
	"mptcp":         "the socket is MPTCP",
	"repair":        "the socket is in TCP_REPAIR",
	"kernel":        "the socket is the kernel's own",
	"user_data":     "a part of the kernel holds the socket (sockmap, KCM, a tunnel)",
	"filter":        "the socket has a socket filter",
	"authenticated": "the connection is authenticated (TCP MD5 or AO)",
	"proto":         "the socket's protocol cannot be copied",
	"no_offer":      "the other end was not offered: it is remote, or not under the policy",
	"not_peers":     "the two sockets are not the ends of one connection",
	"offers_full":   "too many offers wait already",
	"nomem":         "out of memory",
}

var fallbacks = map[string]string{
	"not_ready":   "the reader does not look into the ring yet",
	"tcp_unread":  "earlier TCP bytes are still unread, and order comes first",
	"ring_full":   "the ring was full",
	"nomem":       "no memory for the ring",
	"oob":         "urgent data",
	"zerocopy":    "MSG_ZEROCOPY",
	"peer_closed": "the peer shut down reading, or closed",
	"filter":      "the reader has a socket filter",
	"timestamp":   "one end asks for timestamps",
	"control":     "sent with ancillary data",
	"rcvlowat":    "the reader set SO_RCVLOWAT",
	"taken_over":  "a part of the kernel reads the socket",
	"repair":      "TCP_REPAIR",
	"peek_off":    "the reader set SO_PEEK_OFF",
	"sigio":       "the reader wants a signal for each arrival (O_ASYNC)",
	"pacing":      "the sender set SO_MAX_PACING_RATE",
	"left":        "the socket left the ring",
}

// Explain says what a counter means, or nothing if it is unknown here.
func Explain(name string) string {
	if reason, ok := strings.CutPrefix(name, "refused_"); ok {
		return prefixed("not joined: ", refusals[reason])
	}
	if reason, ok := strings.CutPrefix(name, "tcp_bytes_"); ok {
		return prefixed("bytes by TCP: ", fallbacks[reason])
	}
	return meanings[name]
}

// ExplainRefusal says what a reason for not joining means.
func ExplainRefusal(reason string) string {
	return refusals[reason]
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
