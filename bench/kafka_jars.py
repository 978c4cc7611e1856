"""Apache Kafka's jars: those of an installation that KAFKA_HOME names, else fetched once through Maven into a folder
outside the tree.

    python -m tailrace.bench.kafka_jars    fetches them now
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "4.1.1"
#: The newest one, for tests that leave a broker as it is by default.
NEWEST = "4.4.0"
LOG4J = "2.24.3"
#: Seconds that fetching may take.
PATIENCE = 600
#: The variable that names an unpacked Kafka; its `libs` are taken.
HOME = "KAFKA_HOME"
HOW = (
    "install Java 17 and Maven, then run `python -m tailrace.bench.kafka_jars`; "
    f"or install Java 17, unpack Kafka 4 and set {HOME} to its folder"
)

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tailrace.bench</groupId><artifactId>kafka-broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId><version>{log4j}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>{log4j}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-1.2-api</artifactId><version>{log4j}</version>
    </dependency>
  </dependencies>
</project>
"""


class NoKafka(Exception):
    """The jars are not here and cannot be fetched; the text says why."""


def folder(version: str = VERSION) -> Path:
    """The folder of the jars of a version, which may be missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tailrace" / f"kafka-{version}"


def cached(version: str = VERSION) -> bool:
    """Whether the jars were fetched once and are all here."""
    return (folder(version) / "complete").exists()


def jars(version: str = VERSION) -> Path:
    """The folder with the jars, fetched if need be; one process at a time. An installation that KAFKA_HOME names stands
    in for the usual version only. Raises NoKafka."""
    if not shutil.which("java"):
        raise NoKafka("there is no java")
    if version == VERSION and (home := os.environ.get(HOME, "")):
        libraries = Path(home) / "libs"
        if not any(libraries.glob("kafka_2*.jar")):
            raise NoKafka(f"{HOME} is {home}, and there is no libs/kafka_2….jar in it")
        return libraries
    found = folder(version)
    if cached(version):
        return found
    program = shutil.which("mvn")
    if program is None:
        raise NoKafka("the jars are not cached and there is no mvn to fetch them")
    found.mkdir(parents=True, exist_ok=True)
    with (found / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cached(version):
            _fetch(program, found, version)
    return found


def _fetch(program: str, into: Path, version: str) -> None:
    pom = into / "pom.xml"
    pom.write_text(POM.format(version=version, log4j=LOG4J))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
    try:
        done = subprocess.run(
            [program, "-q", "-B", "-f", str(pom), *goal], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoKafka(f"mvn did not fetch the jars within {PATIENCE} s") from error
    if done.returncode:
        raise NoKafka(f"mvn could not fetch the jars: {(done.stdout + done.stderr).strip()[-500:]}")
    (into / "complete").touch()


if __name__ == "__main__":
    try:
        print(f"Kafka {VERSION}: {jars()}")
    except NoKafka as error:
        print(f"Kafka {VERSION} cannot be started here: {error}; {HOW}", file=sys.stderr)
