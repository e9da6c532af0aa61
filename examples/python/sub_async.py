"""Reads two subscriptions in one event loop, without threads: python sub_async.py robot/camera robot/steer [SAMPLES]"""

import asyncio
import sys

import paceline


async def read(node: paceline.Node, tag: str, samples: int) -> None:
    with node.subscriber(tag, within_ms=200) as subscriber:
        async for sample in subscriber:
            print(f"{sample.tag} {sample.seq} {len(sample)} bytes, age {sample.age_ms:.2f} ms")
            samples -= 1
            if samples == 0:
                return


async def main(tags: list[str], samples: int) -> None:
    with paceline.open() as node:
        await asyncio.gather(*(read(node, tag, samples) for tag in tags))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else -1))
