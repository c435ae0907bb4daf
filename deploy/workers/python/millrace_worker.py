"""Worker for a queue of Millrace. Needs only the standard library of Python 3.9 or later."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import threading
import time
import uuid
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Callable, Mapping
from urllib.parse import quote, urlsplit

Task = Callable[[dict[str, Any], "Job"], Any]
LOG = logging.getLogger("millrace")
LEASES = "/api/v1/workers/leases/"


class PermanentError(Exception):
    """Fails a job without further tries."""


class Job:
    """One attempt of a job. When `cancelled` is set, return None or raise to give the job back."""
    job_id: str
    task: str
    args: dict[str, Any]
    attempt: int
    tries: int
    max_tries: int
    deadline: str
    dependencies: list[dict[str, Any]]
    traceparent: str | None
    alone: bool

    def __init__(self, fields: Mapping[str, Any], report: Callable[[Job, Any], None]) -> None:
        vars(self).update(fields)
        self.cancelled, self._count, self._report = threading.Event(), 0, report

    def progress(self, label: str, current: int | None = None, total: int | None = None) -> None:
        """Replaces the label and the progress of the job."""
        self._report(self, {"progress": {"label": label, "current": current, "total": total}})

    def emit(self, kind: str, data: Any = None) -> None:
        """Adds an event to the stream of the job."""
        self._report(self, {"event": {"kind": kind, "data": data}})

    def log(self, message: str, data: Any = None, level: str = "info") -> None:
        """Adds a line to the log of the job. The data are a dictionary."""
        self._report(self, {"log": {"level": level, "message": message, "data": data or {}}})


class Worker:
    """Claims jobs of a queue and runs their tasks in threads until it is stopped."""
    def __init__(self, base_url: str, key: str, queue: str, tasks: Mapping[str, Task], *,
                 concurrency: int = 4, lease_seconds: int = 30, stop_seconds: float = 20) -> None:
        self._url, self._key, self._tasks = urlsplit(base_url.rstrip("/")), key, dict(tasks)
        self._path, self._pause = f"/api/v1/worker-queues/{quote(queue)}/claims", lease_seconds / 3
        self._claim = {"worker": f"{socket.gethostname()}:{os.getpid()}", "tasks": list(tasks),
                       "lease_seconds": lease_seconds, "wait_seconds": 30}
        self._concurrency, self._stop_seconds = concurrency, stop_seconds
        self._lease, self._is_drained, self._refusal = str(uuid.uuid4()), False, ""
        self._jobs: dict[str, Job] = {}
        self._waiting: set[HTTPConnection] = set()
        self._lock = threading.Condition()  # Guards the jobs and the lease.
        self._stopping, self._closed = threading.Event(), threading.Event()

    def stop(self, *_: Any) -> None:
        """Stops the worker. Running jobs have `stop_seconds` to end, then they are given back."""
        self._stopping.set()

    def run(self) -> None:
        """Works until `stop()`, SIGTERM or SIGINT. Raises RuntimeError if the service refuses."""
        with contextlib.suppress(ValueError):  # Only the main thread may handle signals.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self.stop)
        for loop in (self._renew, *[self._work] * self._concurrency):
            threading.Thread(target=loop, daemon=True).start()
        self._stopping.wait()
        self._abort_claims()
        with self._lock:
            self._lock.wait_for(lambda: not self._jobs or self._refusal, self._stop_seconds)
            for job in self._jobs.values():
                job.cancelled.set()
            self._lock.wait_for(lambda: not self._jobs, 2)
        self._closed.set()
        self._call("DELETE", LEASES + self._lease)
        if self._refusal:
            raise RuntimeError(f"The service refuses the worker: {self._refusal}")

    def _work(self) -> None:
        while not self._stopping.is_set():
            lease = self._lease
            body = {**self._claim, "lease_id": lease, "claim_id": str(uuid.uuid4())}
            status, answer = self._persist(self._path, body, lease, True)
            with self._lock:
                if status != 200 or lease != self._lease or self._stopping.is_set():
                    continue
                self._is_drained = answer["drain"]
                new = [Job(fields, self._report) for fields in answer["jobs"]]
                self._jobs.update({job.job_id: job for job in new})
                self._lock.wait_for(lambda: len(self._jobs) < 2 or not any(j.alone for j in new))
            for job in new:
                self._run(job)
            while not new and not self._stopping.wait(1) and self._is_drained:
                pass

    def _run(self, job: Job) -> None:
        try:
            result = self._tasks[job.task](job.args, job)
            is_given_back = result is None and job.cancelled.is_set()
            self._report(job, {"release": {}} if is_given_back else {"done": {"result": result}})
        except BaseException as error:  # Also SystemExit, which would end only this thread.
            LOG.warning("The job %s failed", job.job_id, exc_info=True)
            detail = (str(error) or repr(error))[:4000]
            failed = {"detail": detail, "retry": not isinstance(error, PermanentError)}
            self._report(job, {"release": {}} if job.cancelled.is_set() else {"failed": failed})

    def _report(self, job: Job, item: dict[str, Any]) -> None:
        """Reports an item of a job until the service answers. Forgets the job after its end."""
        with self._lock:
            lease = self._lease
            if self._jobs.get(job.job_id) is not job:
                return
            job._count += 1
        whole = {"job_id": job.job_id, "attempt": job.attempt, "n": job._count, **item}
        status, answer = self._persist(f"{LEASES}{lease}/reports", {"items": [whole]}, lease)
        outcome = answer["items"][0] if status == 200 else {"status": "invalid"}
        if outcome["status"] == "invalid":
            reason = str(outcome.get("reason", answer))[:4000]
            LOG.warning("The service rejects an item of %s: %s", job.job_id, reason)
            if "done" in item:
                return self._report(job, {"failed": {"detail": reason, "retry": False}})
        with self._lock:
            if outcome["status"] == "superseded" or item.keys() & {"done", "failed", "release"}:
                job.cancelled.set()
                if self._jobs.get(job.job_id) is job:
                    del self._jobs[job.job_id]
            self._lock.notify_all()

    def _renew(self) -> None:
        while not self._closed.wait(self._pause):
            lease, jobs = self._lease, self._jobs.copy()
            named = [{"job_id": job.job_id, "attempt": job.attempt} for job in jobs.values()]
            status, answer = self._persist(LEASES + lease, {"jobs": named}, lease)
            if status == 200:
                self._is_drained = answer["drain"]
                for job_id in jobs.keys() & {*answer["cancelled"], *answer["superseded"]}:
                    jobs[job_id].cancelled.set()

    def _lose(self, lease: str) -> None:
        """Stops all jobs of an expired lease, and goes on with a new one."""
        with self._lock:
            if lease == self._lease:
                for job in self._jobs.values():
                    job.cancelled.set()
                self._lease, self._jobs = str(uuid.uuid4()), {}
            self._lock.notify_all()
        self._abort_claims()

    def _abort_claims(self) -> None:
        for connection in list(self._waiting):
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _persist(self, path: str, body: Any, lease: str, is_claim: bool = False) -> Any:
        """Repeats a request until the service answers it, or the lease is lost, or claims end."""
        while True:
            status, answer = self._call("POST", path, body, is_claim)
            is_over = lease != self._lease or is_claim and self._stopping.is_set()
            if is_over or 0 < status < 500 and status not in (408, 425, 429):
                break
            LOG.warning("%s failed with status %d: %s", path, status, answer)
            time.sleep(self._pause / 5)
        if status == 404 and not is_claim:
            self._lose(lease)
        elif status >= 400 and not is_over and (is_claim or status in (401, 403)):
            self._refusal = str(answer)
            self.stop()
        return status, answer

    def _call(self, method: str, path: str, body: Any = None, is_claim: bool = False) -> Any:
        make = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = make(self._url.netloc, timeout=45 if is_claim else 10)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        self._waiting.update([connection] if is_claim else [])
        try:
            connection.request(method, self._url.path + path, json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or "null")
        except (OSError, HTTPException, json.JSONDecodeError) as error:
            return 0, repr(error)  # No answer arrived.
        finally:
            self._waiting.discard(connection)
            connection.close()
