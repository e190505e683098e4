"""Time stamps by RFC 3161: a server that others trust signs that a message was there at a time.

Needs rfc3161-client, `veilmark[timestamp]`.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from veilmark.errors import DataError, OptionError, OutputError

TIMEOUT = 20.0
LARGEST = 1_000_000


def request_stamp(message: bytes, server: str) -> bytes:
    """Ask a server for a time stamp; gives its answer, which is for this message and this request."""
    client = _client()
    if urlsplit(server).scheme not in ("http", "https") or not urlsplit(server).hostname:
        raise OptionError(f"The URL of a time stamp server must begin with https:// or http://, not '{server}'.")
    asked = client.TimestampRequestBuilder().data(message).hash_algorithm(client.HashAlgorithm.SHA256).build()
    answer = _post(asked.as_bytes(), server)
    found = _decoded(answer, server)
    if client.PKIStatus(found.status) != client.PKIStatus.GRANTED:
        raise OutputError(f"The time stamp server '{_plain(server)}' refused. Try again, or another server.")
    imprint = found.tst_info.message_imprint.message
    if (found.tst_info.nonce, imprint) != (asked.nonce, asked.message_imprint.message):
        raise OutputError(
            f"The time stamp server '{_plain(server)}' sent an answer to another request. Try another server."
        )
    return answer


def stamped_at(stamp: bytes, message: bytes, certificates: Sequence[x509.Certificate]) -> datetime:
    """When a message was stamped, by a server whose certificate leads to one of these; `DataError` says that it was not."""
    client = _client()
    found = _decoded(stamp, "the anchor")
    try:
        client.VerifierBuilder(roots=list(certificates)).build().verify_message(found, message)
    except (client.VerificationError, ValueError):
        raise DataError(
            "The time stamp does not belong to this message, or its server is not the one of the "
            "certificate. Check both files."
        ) from None
    time: datetime = found.tst_info.gen_time
    return time.astimezone(UTC)


def read_certificates(paths: Sequence[str | os.PathLike[str]]) -> list[x509.Certificate]:
    """The certificates in some PEM files."""
    found: list[x509.Certificate] = []
    for path in paths:
        try:
            found += x509.load_pem_x509_certificates(Path(path).read_bytes())
        except OSError as error:
            raise OptionError(f"The certificate '{path}' cannot be read: {error.strerror}.") from None
        except ValueError:
            raise OptionError(f"'{path}' contains no certificate. Give a PEM file of the time stamp server.") from None
    return found


def _client() -> Any:
    try:
        import rfc3161_client
    except ModuleNotFoundError:
        raise OptionError(
            "Time stamps need the package rfc3161-client. Install it with: pip install 'veilmark[timestamp]'."
        ) from None
    return rfc3161_client


def _decoded(answer: bytes, source: str) -> Any:
    try:
        return _client().decode_timestamp_response(answer)
    except ValueError:
        raise DataError(f"'{_plain(source)}' is not a valid time stamp. Check the URL or the file.") from None


def _post(query: bytes, server: str) -> bytes:
    headers = {"Content-Type": "application/timestamp-query"}
    try:
        request = urllib.request.Request(server, query, headers, method="POST")
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            content: bytes = answer.read(LARGEST)
    except (OSError, HTTPException, ValueError) as error:
        what = f"it answered {error.code}" if isinstance(error, urllib.error.HTTPError) else "it cannot be reached"
        raise OutputError(
            f"The time stamp server '{_plain(server)}' sent no time stamp: {what}. Check the URL and the network."
        ) from None
    return content


def _plain(server: str) -> str:
    """An address without a name and password."""
    return server.rpartition("@")[2]
