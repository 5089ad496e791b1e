"""What a search process does: it listens to what was written and what is searched, until the server has gone."""

from __future__ import annotations

import gc
import os
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import IO

from threadpoolctl import threadpool_limits

from service import logs
from service.searchers.messages import Ask, Changed, Drop, FromProcess, Load, Loaded, Ping, Pong, pack, read
from service.searchers.replicas import Replicas
from service.settings import Settings


def listen(handle: int) -> None:
    """Serve over a socket, by its file descriptor, until it is closed."""
    with socket.socket(fileno=handle) as link, link.makefile("rb") as stream:
        try:
            settings: Settings = read(stream)
        except (EOFError, ConnectionError):  # the server has ended again
            return
        logs.configure(settings)
        with threadpool_limits(1, user_api="blas"):
            _Process(link, Replicas(settings)).follow(stream)


class _Process:
    def __init__(self, link: socket.socket, replicas: Replicas) -> None:
        self._link = link
        self._sending = threading.Lock()
        self._replicas = replicas
        self._asked: queue.SimpleQueue[Ask] = queue.SimpleQueue()
        threading.Thread(target=self._answer, name="ccq-search", daemon=True).start()

    def follow(self, stream: IO[bytes]) -> None:
        """Take what comes; a search sees all that came before it."""
        while True:
            try:
                message = read(stream)
            except (EOFError, ConnectionError):
                os._exit(0)  # the server has gone, and nothing here is worth keeping
            match message:
                case Ask():
                    self._asked.put(message)
                case Ping():
                    self._send(Pong())
                case Changed():
                    self._replicas.follow(message)
                case Load():
                    self._replicas.load(message, partial(self._told, message.ticket))
                case Drop():
                    self._replicas.drop(message.number)

    def _told(self, ticket: int, loaded: bool) -> None:
        gc.collect()
        gc.freeze()  # what is there by now stays, and need not be looked at again and again
        self._send(Loaded(ticket, loaded))

    def _answer(self) -> None:
        for together in in_passes(self._asked):
            for answers in self._replicas.answer(together):
                self._send(answers)

    def _send(self, message: FromProcess) -> None:
        try:
            with self._sending:
                self._link.sendall(pack(message))
        except ConnectionError:
            os._exit(0)


def in_passes(asked: queue.SimpleQueue[Ask]) -> Iterator[list[Ask]]:
    """What is asked, for ever and in its order: each time what lies ready and one pass over the codes can answer."""
    following: Ask | None = None
    while True:
        together = [following or asked.get()]
        following = None
        with suppress(queue.Empty):
            while following is None:
                ask = asked.get_nowait()
                searches = sum(len(one.bodies) for one in (*together, ask))
                if ask.number == together[0].number and searches <= together[0].most:
                    together.append(ask)
                else:
                    following = ask
        yield together
