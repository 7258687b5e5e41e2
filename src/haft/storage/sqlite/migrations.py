"""The schema of the database, as a list of migrations. Never change a released migration: add another."""

from __future__ import annotations

from typing import Final

MIGRATIONS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        tool TEXT NOT NULL,
        status TEXT NOT NULL,
        who TEXT NOT NULL,
        thread TEXT NOT NULL,
        parent TEXT,
        workspace TEXT NOT NULL,
        started_at REAL NOT NULL,
        ended_at REAL,
        document TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX runs_open ON runs (host) WHERE ended_at IS NULL;
    CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;

    CREATE TABLE events (
        run TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        type TEXT NOT NULL,
        status TEXT NOT NULL,
        facts TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) WITHOUT ROWID;

    CREATE TABLE run_paths (
        path TEXT NOT NULL,
        run TEXT NOT NULL,
        PRIMARY KEY (path, run)
    ) WITHOUT ROWID;

    CREATE TABLE cancels (
        run TEXT PRIMARY KEY,
        at REAL NOT NULL,
        who TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE change_sets (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        run TEXT NOT NULL UNIQUE,
        workspace TEXT NOT NULL,
        area TEXT NOT NULL,
        who TEXT NOT NULL,
        thread TEXT NOT NULL,
        parent TEXT,
        verb TEXT NOT NULL,
        reverses TEXT NOT NULL,
        engine TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        at REAL NOT NULL,
        files INTEGER NOT NULL,
        kept INTEGER NOT NULL,
        latest TEXT NOT NULL
    );
    CREATE INDEX change_sets_workspace ON change_sets (workspace, seq);
    CREATE INDEX change_sets_parent ON change_sets (parent) WHERE parent IS NOT NULL;
    """,
    """
    CREATE TABLE approvals (
        id TEXT PRIMARY KEY,
        run TEXT NOT NULL,
        host TEXT NOT NULL,
        workspace TEXT NOT NULL,
        who TEXT NOT NULL,
        thread TEXT NOT NULL,
        created_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        tried INTEGER NOT NULL,
        fingerprint TEXT NOT NULL,
        shown TEXT NOT NULL,
        state TEXT NOT NULL,
        answer TEXT
    ) WITHOUT ROWID;
    CREATE INDEX approvals_state ON approvals (state, workspace);
    CREATE INDEX approvals_fingerprint ON approvals (fingerprint) WHERE state = 'answered';

    CREATE TABLE remembered (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        thread TEXT,
        rule TEXT NOT NULL,
        pin TEXT,
        who TEXT NOT NULL,
        at REAL NOT NULL
    );
    CREATE INDEX remembered_workspace ON remembered (workspace);

    CREATE TABLE pins (
        workspace TEXT NOT NULL,
        tool TEXT NOT NULL,
        pin TEXT NOT NULL,
        definition TEXT NOT NULL,
        who TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (workspace, tool)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE fences (
        host TEXT PRIMARY KEY,
        number INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE workspaces (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE
    );
    CREATE TABLE change_paths (
        workspace INTEGER NOT NULL,
        path TEXT NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (workspace, path, seq)
    ) WITHOUT ROWID;
    INSERT INTO workspaces (path) SELECT DISTINCT workspace FROM change_sets;
    INSERT OR IGNORE INTO change_paths (workspace, path, seq)
        SELECT workspaces.id, run_paths.path, change_sets.seq
        FROM run_paths
        JOIN change_sets ON change_sets.run = run_paths.run
        JOIN workspaces ON workspaces.path = change_sets.workspace;
    """,
    # In a table WITHOUT ROWID, a row longer than a quarter of a page takes its own page: a run of a trivial tool took
    # three times its size.
    """
    CREATE TABLE runs_by_number (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        host TEXT NOT NULL,
        tool TEXT NOT NULL,
        status TEXT NOT NULL,
        who TEXT NOT NULL,
        thread TEXT NOT NULL,
        parent TEXT,
        workspace TEXT NOT NULL,
        started_at REAL NOT NULL,
        ended_at REAL,
        document TEXT NOT NULL
    );
    INSERT INTO runs_by_number
        (id, host, tool, status, who, thread, parent, workspace, started_at, ended_at, document)
        SELECT id, host, tool, status, who, thread, parent, workspace, started_at, ended_at, document
        FROM runs ORDER BY id;
    DROP TABLE runs;
    ALTER TABLE runs_by_number RENAME TO runs;
    CREATE INDEX runs_open ON runs (host) WHERE ended_at IS NULL;
    CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;
    CREATE INDEX runs_tool ON runs (tool, id);
    CREATE INDEX runs_status ON runs (status, id);
    CREATE INDEX runs_thread ON runs (thread, id);
    CREATE INDEX runs_workspace ON runs (workspace, id);
    """,
    """
    CREATE INDEX change_sets_held ON change_sets (seq) WHERE state = 'held';
    CREATE INDEX change_sets_undoable ON change_sets (area, at)
        WHERE kept = 1 AND state = 'committed' AND verb = 'call' AND files > 0;
    """,
    # A killed host of the first formats may have written a run to the table of change sets, but not yet its paths. The
    # empty path stands for unknown paths.
    """
    INSERT OR IGNORE INTO change_paths (workspace, path, seq)
        SELECT workspaces.id, '', change_sets.seq
        FROM change_sets
        JOIN workspaces ON workspaces.path = change_sets.workspace
        LEFT JOIN (SELECT seq, count(*) AS known FROM change_paths GROUP BY seq) AS found
            ON found.seq = change_sets.seq
        WHERE change_sets.state IN ('committed', 'undone') AND change_sets.files > coalesce(found.known, 0);
    """,
    """
    CREATE TABLE run_hosts (
        host TEXT NOT NULL,
        run TEXT NOT NULL,
        PRIMARY KEY (host, run)
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE runs ADD COLUMN batch TEXT;
    CREATE INDEX runs_batch ON runs (batch) WHERE batch IS NOT NULL;
    """,
    """
    ALTER TABLE runs ADD COLUMN call_key TEXT;
    CREATE INDEX runs_call_key ON runs (call_key) WHERE call_key IS NOT NULL;
    """,
    """
    CREATE TABLE request_keys (
        key TEXT PRIMARY KEY,
        request TEXT NOT NULL,
        runs TEXT NOT NULL,
        host TEXT NOT NULL,
        at REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX request_keys_at ON request_keys (at);
    CREATE INDEX runs_who ON runs (who, id);
    """,
)
