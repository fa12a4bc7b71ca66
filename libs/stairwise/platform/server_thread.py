"""The gRPC server on a thread of its own, with its own loop: for services whose main thread does something else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

import grpc

from stairwise.platform.security.settings import OFF, Security
from stairwise.platform.server import Server


class ServerThread:
    """Listens from the start, so that health can be asked; says SERVING when ``ready`` is called."""

    def __init__(
        self,
        listen: str,
        register: Callable[[grpc.aio.Server], None] = lambda _: None,
        names: Sequence[str] = (),
        *,
        security: Security = OFF,
    ) -> None:
        opened: Future[Server] = Future()
        serve = self._serve(opened, listen, register, names, security)
        self._thread = threading.Thread(target=lambda: asyncio.run(serve), name="server", daemon=True)
        self._thread.start()
        self._server = opened.result()
        self.port = self._server.port

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ready(self) -> None:
        self._do(self._server.ready())

    def tell(self, name: str, *, is_well: bool) -> None:
        """Answer whoever asks for the health of something else than the whole."""
        self._do(self._server.tell(name, is_well=is_well))

    def stop(self, grace: float = 2) -> None:
        if self._thread.is_alive():
            self._do(self._server.stop(grace))
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()

    def _do(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _serve(
        self,
        opened: Future[Server],
        listen: str,
        register: Callable[[grpc.aio.Server], None],
        names: Sequence[str],
        security: Security,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        try:
            server = Server(listen, security=security)
            await server.start(register, names)
        except BaseException as error:
            opened.set_exception(error)  # raised where the thread was started
            return
        opened.set_result(server)
        await self._stopped.wait()
