PRAGMA application_id = 1231186276;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE conversations (
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        title TEXT,
        reply_language TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, project_id) REFERENCES projects (tenant, id) ON DELETE CASCADE
    );
INSERT INTO "conversations" VALUES('acme','ann','c1','p1','Where is the app made?',NULL,1767355200000001);
CREATE TABLE jobs (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        state TEXT NOT NULL,
        phase TEXT NOT NULL,
        statistics TEXT NOT NULL,
        error TEXT,
        lease_owner TEXT NOT NULL,
        beat INTEGER NOT NULL,
        started_at INTEGER NOT NULL,
        finished_at INTEGER,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, project_id) REFERENCES projects (tenant, id) ON DELETE CASCADE
    );
INSERT INTO "jobs" VALUES('acme','j1','p1','queued','fetching','{"scanned":0,"new":0,"modified":0,"deleted":0,"unchanged":0,"failed":0,"skipped":{},"chunks":0,"chunks_embedded":0,"chunks_to_embed":0}',NULL,'me',0,1767355200000001,NULL);
CREATE TABLE members (
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        project_id TEXT NOT NULL,
        role TEXT NOT NULL,
        PRIMARY KEY (tenant, subject, project_id),
        FOREIGN KEY (tenant, project_id) REFERENCES projects (tenant, id) ON DELETE CASCADE
    );
INSERT INTO "members" VALUES('acme','ann','p1','owner');
CREATE TABLE messages (
        tenant TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        id TEXT NOT NULL,
        run_id TEXT NOT NULL,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        PRIMARY KEY (tenant, conversation_id, position),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    );
INSERT INTO "messages" VALUES('acme','c1',1,'question of r1','r1','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c1',2,'answer of r1','r1','assistant','In `create_app` [1].',1767355200000001,'{"finish_reason":"stop","error_code":null,"model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true}],"cited_indexes":[1],"grounding_warnings":["weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
CREATE TABLE projects (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        name TEXT NOT NULL,
        status TEXT NOT NULL,
        source TEXT,
        reply_language TEXT,
        settings TEXT NOT NULL,
        active_generation INTEGER,
        embedding_signature TEXT,
        chunk_count INTEGER NOT NULL,
        path_count INTEGER NOT NULL,
        commit_sha TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id)
    );
INSERT INTO "projects" VALUES('acme','p1','flask','ready','{"kind":"git","url":"https://example.org/a.git","ref":"main","credential":null}',NULL,'{"classify_intent":true,"grade_evidence":true,"max_retrieval_attempts":2}',1,NULL,2,1,'0000000000000000000000000000000000000000',1767355200000001);
CREATE TABLE runs (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        subject TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        state TEXT NOT NULL,
        lease_owner TEXT NOT NULL,
        beat INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        ended_at INTEGER,
        last_event_id INTEGER NOT NULL,
        terminator TEXT,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    );
INSERT INTO "runs" VALUES('acme','r1','ann','c1','p1','answer of r1','completed','me',0,1767355200000001,1767355200000001,5,'{"kind":"done","message_id":"answer of r1","model":"scripted","finish_reason":"stop","cited_indexes":[],"grounding_warnings":[],"intent":"codebase_question","retrieval_attempts":1,"citations":[],"degraded":[]}');
CREATE INDEX members_of_project ON members (tenant, project_id);
CREATE INDEX jobs_of_project ON jobs (tenant, project_id, started_at, id);
CREATE UNIQUE INDEX one_live_job_a_project ON jobs (tenant, project_id)
        WHERE finished_at IS NULL
    ;
CREATE INDEX conversations_of_principal
        ON conversations (tenant, subject, created_at, id)
    ;
CREATE INDEX conversations_of_project ON conversations (tenant, project_id);
CREATE INDEX runs_of_conversation ON runs (tenant, conversation_id);
CREATE UNIQUE INDEX one_live_run_a_conversation ON runs (tenant, conversation_id)
        WHERE ended_at IS NULL
    ;
COMMIT;
