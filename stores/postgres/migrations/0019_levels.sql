-- Priorities of one's own: sixteen levels may be named (model/priority.py).

ALTER TABLE outbox DROP CONSTRAINT outbox_priority_check;
ALTER TABLE outbox ADD CONSTRAINT outbox_priority_check CHECK (priority BETWEEN 0 AND 15);
