-- As 2_sqlite.sql.
CREATE TABLE prunes (
    at_ms   BIGINT NOT NULL,
    removed BIGINT NOT NULL
);
