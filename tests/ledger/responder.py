"""A time stamp server of our own on 127.0.0.1 (RFC 3161), with certificates of its own."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

from asn1crypto import algos, cms, core, tsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)


def certificate(name, key, issuer=None, issuer_key=None):
    """A certificate authority or, with an issuer, a server that may stamp."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + 10 * DAY)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
        builder = builder.add_extension(usage, critical=True)
    return builder.sign(issuer_key or key, hashes.SHA256())


class Authority:
    """Stamps what it is asked to; `wrong` names what it gets wrong."""

    def __init__(self, wrong=""):
        self.wrong = wrong
        root_key, self.key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        self.root = certificate("root", root_key)
        self.leaf = certificate("stamps", self.key, self.root, root_key)

    @property
    def pem(self):
        return self.root.public_bytes(Encoding.PEM)

    def answer(self, query):
        if self.wrong == "refused":
            return bytes.fromhex("30053003020102")  # a status of 2, rejection, and nothing else
        asked = tsp.TimeStampReq.load(query)
        info = tsp.TSTInfo(
            {
                "version": "v1",
                "policy": "1.2.3.4",
                "message_imprint": asked["message_imprint"],
                "serial_number": 7,
                "gen_time": datetime.now(UTC).replace(microsecond=0),
                "nonce": asked["nonce"].native + (self.wrong == "nonce"),
            }
        )
        signed = self._signed(info.dump())
        content = cms.ContentInfo({"content_type": "signed_data", "content": signed})
        return tsp.TimeStampResp({"status": {"status": "granted"}, "time_stamp_token": content}).dump()

    def _signed(self, info):
        leaf = asn1_x509.Certificate.load(self.leaf.public_bytes(Encoding.DER))
        sha256 = algos.DigestAlgorithm({"algorithm": "sha256"})
        known_by = tsp.SigningCertificateV2({"certs": [{"cert_hash": hashlib.sha256(leaf.dump()).digest()}]})
        attributes = cms.CMSAttributes(
            [
                {"type": "content_type", "values": ["tst_info"]},
                {"type": "message_digest", "values": [hashlib.sha256(info).digest()]},
                {"type": "signing_certificate_v2", "values": [known_by]},
            ]
        )
        signature = self.key.sign(attributes.dump(), ec.ECDSA(hashes.SHA256()))
        if self.wrong == "signature":
            signature = self.key.sign(b"something else", ec.ECDSA(hashes.SHA256()))
        signer = {
            "version": "v1",
            "sid": cms.IssuerAndSerialNumber({"issuer": leaf.issuer, "serial_number": leaf.serial_number}),
            "digest_algorithm": sha256,
            "signed_attrs": attributes,
            "signature_algorithm": {"algorithm": "sha256_ecdsa"},
            "signature": signature,
        }
        encapsulated = {"content_type": "tst_info", "content": core.ParsableOctetString(info)}
        return cms.SignedData(
            {
                "version": "v3",
                "digest_algorithms": [sha256],
                "encap_content_info": encapsulated,
                "certificates": [leaf],
                "signer_infos": [signer],
            }
        )


@contextmanager
def serving(authority):
    """The address of the server while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            answer = authority.answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/tsr"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
