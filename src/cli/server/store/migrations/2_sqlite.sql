-- When records were removed because they were older than they are kept: lists change with it.
CREATE TABLE prunes (
    at_ms   BIGINT NOT NULL,
    removed BIGINT NOT NULL
);
