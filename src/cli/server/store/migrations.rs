//! Migrations that create the tables. A published migration never changes; changes are added as further migrations.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};

use super::Database;

const SQLITE: [&str; 2] = [
    include_str!("migrations/1_sqlite.sql"),
    include_str!("migrations/2_sqlite.sql"),
];
const POSTGRES: [&str; 2] = [
    include_str!("migrations/1_postgres.sql"),
    include_str!("migrations/2_postgres.sql"),
];

pub(super) fn of(database: &Database) -> Migrator {
    let texts = match database {
        Database::Sqlite(_) => SQLITE,
        Database::Postgres(_) => POSTGRES,
    };
    let migration = |(version, sql): (i64, &'static str)| {
        let sql = AssertSqlSafe(sql).into_sql_str();
        Migration::new(version, "tables".into(), MigrationType::Simple, sql, false)
    };
    Migrator::with_migrations((1i64..).zip(texts).map(migration).collect())
}
