-- Times are milliseconds since 1970 in UTC. A record's text is in a table of its own, so that lists
-- read little. `quarantine` is why a record is kept from lists; null for all others.
CREATE TABLE records (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    received_ms BIGINT NOT NULL,
    device_key  TEXT NOT NULL,
    backend     TEXT NOT NULL,
    complete    BIGINT NOT NULL,
    entry       TEXT NOT NULL,
    quarantine  TEXT
);
CREATE INDEX records_by_device ON records (device_key, seq);
CREATE INDEX records_in_quarantine ON records (seq) WHERE quarantine IS NOT NULL;
CREATE TABLE texts (
    seq  INTEGER PRIMARY KEY REFERENCES records (seq),
    text TEXT NOT NULL
);
CREATE TABLE tokens (
    hash       TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    role       TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);
