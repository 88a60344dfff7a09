# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Inside the test machine: two places to talk (loopback, and two network
# namespaces with a bridge between them), servers that are in the policy's cgroup
# or outside it, and one measurement at a time, written to a file of cells.
# Sourced by bench/guest.
#
# A cell is a line of tab-separated fields: place, workload, variant, figure,
# bytes through rings, bytes of joined sockets by TCP. bench/table and
# bench/targets read them.

GROUP=/sys/fs/cgroup/demo
OTHER_GROUP=/sys/fs/cgroup/plain
CELLS=/out/cells
STATS=/proc/tcp_shunt/stats

progress() { echo "bench: $*" >&2; }
fail() { echo "bench: $*" >&2; exit 1; }

# make_places: the namespaces server and client, each with a veth to one bridge.
make_places() {
	local end n=0
	ip link add demo0 type bridge || fail "the machine has no bridge"
	ip link set demo0 up
	for end in server client; do
		n=$((n + 1))
		ip netns add "$end"
		ip link add "demo-$end" type veth peer name eth0 netns "$end"
		ip link set "demo-$end" master demo0 up
		ip -n "$end" link set lo up
		ip -n "$end" addr add "10.77.0.$n/24" dev eth0
		ip -n "$end" link set eth0 up
	done
	nsenter --net=/run/netns/client ping -qc1 -W5 10.77.0.1 >/dev/null || fail "the bridge does not work"
}

# address PLACE: the server's.
address() { [ "$1" = loopback ] && echo 127.0.0.1 || echo 10.77.0.1; }

# at PLACE END COMMAND...: in the network namespace of that end.
at() {
	local place=$1 end=$2
	shift 2
	[ "$place" = loopback ] && exec "$@"
	exec nsenter --net="/run/netns/$end" "$@"
}

# inside / outside COMMAND...: of the policy's cgroup; in a process of its own.
# Outside is a cgroup as well: being in one costs, whatever it is for.
inside() { (echo "$BASHPID" >"$GROUP/cgroup.procs" && at "$@"); }
outside() { (echo "$BASHPID" >"$OTHER_GROUP/cgroup.procs" && at "$@"); }

# port KIND SERVICE: plain servers and joined ones have ports of their own.
port() {
	local base=10000
	[ "$1" = outside ] || base=20000
	case $2 in
	netperf) echo $((base + 865)) ;;
	redis) echo $((base + 379)) ;;
	nginx) echo $((base + 80)) ;;
	esac
}

nginx_conf() { # DIR PORT
	cat <<-END
		user root; worker_processes 1; pid $1/nginx.pid; error_log $1/nginx.log;
		events { worker_connections 256; }
		http { access_log off; sendfile on; keepalive_requests 10000000;
		  client_body_temp_path $1/b; proxy_temp_path $1/p; fastcgi_temp_path $1/f;
		  uwsgi_temp_path $1/u; scgi_temp_path $1/s;
		  server { listen $2; root $1; } }
	END
}

# start_servers PLACE KIND: netserver, Redis and nginx, inside or outside.
start_servers() {
	local place=$1 kind=$2 dir service
	dir=$(mktemp -d)
	"$kind" "$place" server netserver -4 -p "$(port "$kind" netperf)" >/dev/null
	"$kind" "$place" server redis-server --port "$(port "$kind" redis)" --bind "$(address "$place")" \
		--protected-mode no --save '' --appendonly no --daemonize yes --dir "$dir" >/dev/null
	nginx_conf "$dir" "$(port "$kind" nginx)" >"$dir/nginx.conf"
	head -c 600 /dev/zero | tr '\0' x >"$dir/small"
	"$kind" "$place" server nginx -e "$dir/nginx.log" -c "$dir/nginx.conf"
	for service in netperf redis nginx; do
		listening "$place" "$(port "$kind" "$service")" || fail "$service does not start ($kind, $place)"
	done
}

listening() { # PLACE PORT
	local _
	for _ in {1..100}; do
		[ -z "$(outside "$1" server ss -Hltn "sport = :$2")" ] || return 0
		sleep 0.1
	done
	return 1
}

netperf_figure() { # CLIENT SERVER PLACE TEST [OPTION...]
	local client=$1 server=$2 place=$3 test=$4
	shift 4
	"$client" "$place" client netperf -4 -P 0 -v 0 -H "$(address "$place")" \
		-p "$(port "$server" netperf)" -t "$test" -l "$SECONDS_A_CELL" -- "$@" |
		awk '$1 + 0 > 0 { print $1; exit }'
}

redis_figure() { # CLIENT SERVER PLACE CLIENTS
	"$1" "$3" client redis-benchmark -h "$(address "$3")" -p "$(port "$2" redis)" \
		-t get -c "$4" -n "$((REQUESTS * SECONDS_A_CELL))" --csv |
		awk -F'"' '$2 == "GET" { print $4 }'
}

nginx_figure() { # CLIENT SERVER PLACE
	"$1" "$3" client wrk -t1 -c10 -d"${SECONDS_A_CELL}s" \
		"http://$(address "$3"):$(port "$2" nginx)/small" |
		awk '/Socket errors|Non-2xx/ { bad = 1 } /^Requests\/sec/ { n = $2 } END { if (!bad) print n }'
}

# figure CLIENT SERVER PLACE WORKLOAD: each of both inside or outside.
figure() {
	case $4 in
	rr-*) netperf_figure "$1" "$2" "$3" TCP_RR -r "${4#rr-},${4#rr-}" ;;
	stream-*) netperf_figure "$1" "$2" "$3" TCP_STREAM -m "${4#stream-}" ;;
	crr) netperf_figure "$1" "$2" "$3" TCP_CRR -r 1,1 ;;
	redis-*) redis_figure "$1" "$2" "$3" "${4#redis-}" ;;
	nginx) nginx_figure "$1" "$2" "$3" ;;
	esac
}

# moved: bytes through rings, and bytes of joined sockets by TCP, so far.
moved() {
	[ -e "$STATS" ] || { echo 0 0; return; }
	awk '$1 == "ring_bytes" { ring = $2 } /^tcp_bytes_/ { tcp += $2 }
		END { printf "%.0f %.0f\n", ring, tcp }' "$STATS"
}

# measure PLACE WORKLOAD VARIANT CLIENT SERVER: one cell. What should be joined
# and moved nothing through rings would be a lie in the table.
measure() {
	local ring tcp ring0 tcp0 got
	read -r ring0 tcp0 < <(moved)
	got=$(figure "$4" "$5" "$1" "$2")
	[ -n "$got" ] || fail "$1, $2, $3: the measuring program failed"
	read -r ring tcp < <(moved)
	ring=$((ring - ring0)) tcp=$((tcp - tcp0))
	[ "$4$5" != insideinside ] || [ "$ring" -gt 0 ] ||
		fail "$1, $2, $3: not a byte went through a ring; $(refusals)"
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$got" "$ring" "$tcp" >>"$CELLS"
}

refusals() { echo "the module says: $(awk '/^(joins|refused|tcp_bytes)/ && $2' "$STATS" | tr '\n' ' ')"; }

# policy [OPTION...]: everything in the group is joined, between containers too.
policy() { shunt up --cgroup "$GROUP" --all --scope any "$@" >/dev/null || fail "shunt up failed"; }

# requests_a_second: how many of Redis' make about a second here.
requests_a_second() {
	case ${SHUNT_ACCEL:-} in
	icount) echo 10000 ;;
	kvm) echo 40000 ;;
	*) echo 4000 ;;
	esac
}
