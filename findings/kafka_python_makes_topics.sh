#!/usr/bin/env bash
# kafka-python 3.0.12: `allow_auto_create_topics=False` has no effect. A consumer that subscribes to a topic which does not
# exist has the broker make it: the setting is not handed on to the object that makes the questions for metadata.
# The broker is librdkafka's own simulator, which makes topics only for questions that allow it; librdkafka's consumer, with its
# setting of the same meaning, makes none. Exit code 0: it is as described; 1: it has changed; 2: it could not be tried.
set -u
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" || exit 2
"$folder/venv/bin/pip" install -q --disable-pip-version-check kafka-python==3.0.12 confluent-kafka==2.16.1 || exit 2
timeout 60 "$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer

looking = Producer({"bootstrap.servers": "unused:1", "test.mock.num.brokers": 1, "log_level": 0})
(broker,) = looking.list_topics(timeout=10).brokers.values()
address = f"{broker.host}:{broker.port}"

theirs = Consumer({"bootstrap.servers": address, "group.id": "a", "allow.auto.create.topics": False, "log_level": 0})
theirs.subscribe(["asked-by-librdkafka"])
theirs.poll(2)
theirs.close()
reader = KafkaConsumer(
    bootstrap_servers=address, group_id=None, allow_auto_create_topics=False, api_version=(2, 1)
)
reader.subscribe(["asked-by-kafka-python"])
reader.poll(2000)
reader.close()

there = set(looking.list_topics(timeout=10).topics)
print("kafka-python", version("kafka-python"), "confluent-kafka", version("confluent-kafka"))
print("no topic was made by anybody; after two consumers that may make none there are:", sorted(there))
same = there == {"asked-by-kafka-python"}
print("as described" if same else "CHANGED")
sys.exit(0 if same else 1)
PYTHON
