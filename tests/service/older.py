"""Databases of older versions of the schema, made of one of today."""

_BACK = {
    7: "DROP TABLE encoders;",
    6: "DROP TABLE staging; DROP TABLE discarded; DROP TABLE aliases; ALTER TABLE collections DROP COLUMN generation;",
    5: "DROP TABLE jobs;",
}


def go_back(connection, version):
    """Make a database what it was at a version of the schema, from 4 on, less what that did not know."""
    for known in range(connection.pragma("user_version"), version, -1):
        connection.execute(_BACK[known])
    connection.pragma("user_version", version)
