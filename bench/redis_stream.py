"""The scenario `redis_stream`: entries of a Redis Stream, 200 functions × 50 tenants → no-op functions, settled."""

from __future__ import annotations

from pathlib import Path

from ..assembly.platform import Platform
from ..stores.redis.options import RedisOptions
from ..stores.redis.server import RedisServer, Script
from ..wire.gateway import GatewayClient
from .figures import Figures, Progress
from .redis_server import redis_server
from .scenarios import FUNCTIONS, throughput
from .workload import STREAM, records, write_tailer

#: ARGV: the payload, then header and value, header and value of each entry.
FILL = Script("""
for i = 2, #ARGV, 4 do
  redis.call('XADD', KEYS[1], '*', ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], 'body', ARGV[1])
end
""")

TAILER = f"""\
name: bench
source: {{kind: redis_stream, url: "%s", streams: [{STREAM}], payload: {{field: body}}}}
function: {{header: function}}
tenant: {{header: tenant}}
priority: user_visible
"""


async def redis_stream(folder: Path, count: int, progress: Progress) -> Figures:
    """Runs `count` entries of about 200 bytes."""
    with redis_server(folder / "redis") as url:
        server = RedisServer(RedisOptions(url=url), 1.0)
        await server.call("DEL", STREAM)
        for number, batch in enumerate(records(count)):
            headers = [text for record in batch for header in record.headers for text in header]
            await server.run(FILL, [STREAM], batch[0].payload, *headers)
            progress("filling the stream", number * 256 / count)
        platform = Platform(folder / "data", [FUNCTIONS], tailers=[write_tailer(folder, TAILER % url)])

        async def settled(gateway: GatewayClient) -> int:
            overview = await gateway.overview()
            return sum(tailer.settled for tailer in overview.tailers if tailer.name == "bench")

        try:
            return await throughput(platform, settled, count, progress)
        finally:
            await server.call("DEL", STREAM)
            await server.close()
