"""A bare grpc.aio server that sends back what it gets: what a lookup's latency is compared with."""

from __future__ import annotations

import asyncio
import sys

import grpc

from stairwise.platform.security.settings import OFF
from stairwise.platform.server import options

METHOD = "/echo.Echo/Echo"


async def _echo(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
    return request


async def serve(address: str) -> None:
    server = grpc.aio.server(options=options(OFF))
    handler = grpc.unary_unary_rpc_method_handler(_echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo.Echo", {"Echo": handler}),))
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
