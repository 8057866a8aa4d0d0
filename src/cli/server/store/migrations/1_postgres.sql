-- As 1_sqlite.sql.
CREATE TABLE records (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
    seq  BIGINT PRIMARY KEY REFERENCES records (seq),
    text TEXT NOT NULL
);
CREATE TABLE tokens (
    hash       TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    role       TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);
