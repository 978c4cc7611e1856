"""The broker that tests run against is a real one, and keeps its data when it is killed."""

from __future__ import annotations

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tailrace.bench.kafka_nodes import KafkaCluster


@pytest.mark.long(minutes=0.5)  # test_kafka_log_outage.py kills one in `make test`
def test_a_killed_broker_comes_back_with_what_it_had(own_kafka: KafkaCluster) -> None:
    # Given a record that was acknowledged
    (node,) = own_kafka.nodes
    admin = KafkaAdminClient(bootstrap_servers=node.plain)
    admin.create_topics([NewTopic("t", 1, 1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=node.plain, acks="all")
    producer.send("t", b"kept").get(10)
    producer.close()
    # When the broker is killed and started again
    first = node.pid
    node.kill()
    node.start()
    node.wait()
    # Then another process serves the same record
    assert node.pid != first
    consumer = KafkaConsumer(bootstrap_servers=node.plain, group_id=None, auto_offset_reset="earliest")
    consumer.assign([TopicPartition("t", 0)])
    (records,) = consumer.poll(20_000).values()
    consumer.close()
    assert [record.value for record in records] == [b"kept"]
