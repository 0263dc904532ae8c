PRAGMA application_id = 1231186276;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE conversations (
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        title TEXT,
        reply_language TEXT,
        created_at INTEGER NOT NULL, runs_begun INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, project_id) REFERENCES projects (tenant, id) ON DELETE CASCADE
    );
INSERT INTO "conversations" VALUES('acme','ann','gone','p1','title of gone-1',NULL,1767355200000001,1);
INSERT INTO "conversations" VALUES('acme','ann','c1','p1','title of c1-1',NULL,1767355200000001,7);
INSERT INTO "conversations" VALUES('acme','ann','c2','p1','title of c2-1',NULL,1767355200000001,1);
INSERT INTO "conversations" VALUES('acme','ann','c3','p1','title of c3-1',NULL,1767355200000001,1);
INSERT INTO "conversations" VALUES('acme','ann','c4','p1',NULL,NULL,1767355200000001,0);
CREATE TABLE feedback (
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        run_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        rating TEXT NOT NULL,
        comment TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, subject, run_id),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    );
INSERT INTO "feedback" VALUES('acme','ann','c1-1','c1','up','PLANTED-4d1c',1767355200000001);
CREATE TABLE idempotency (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        owner TEXT NOT NULL,
        beat INTEGER NOT NULL,
        plan TEXT,
        conversation_id TEXT,
        status INTEGER,
        headers TEXT,
        body BLOB,
        run_id TEXT,
        expires_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    );
INSERT INTO "idempotency" VALUES('acme','00b799d9f7b9f1eccfc4361559dcbefa5ebed1aaa9d627f534e07e4bde76e5ba','f','me',0,NULL,'c1',200,'{}',X'','c1-1',1767960000000001);
INSERT INTO "idempotency" VALUES('acme','bac7b15038e7fbebe791fdd42bb2a98d8d48f2e6d484e8648524d7e7198a25b9','f','me',0,NULL,NULL,200,'{}',X'','c1-1',1767960000000001);
INSERT INTO "idempotency" VALUES('acme','21e2b5c3b58bc16c2a173bc8d426f787e14136687135cd8b39de679b45910367','f','me',0,NULL,NULL,NULL,NULL,NULL,NULL,1767960000000001);
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
CREATE TABLE journal (
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        first_id INTEGER NOT NULL,
        part INTEGER NOT NULL,
        parts INTEGER NOT NULL,
        last_id INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (tenant, run_id, first_id, part),
        FOREIGN KEY (tenant, run_id) REFERENCES runs (tenant, id) ON DELETE CASCADE
    );
INSERT INTO "journal" VALUES('acme','c1-1',1,0,1,2,X'01789C8D8D4D0AC2301844AF22B3FEA88DF5375709A5C434B6813429492A16F1409EC38B99A2E0D6D93D9879231809810842D029187D35AE434D020A24EE30AED5377046B818AB9B51A61E1C31A8F5EBB912AC2EC6394F63922135D6380D5E11B46BBF702258E9BA49761930CEA9F76EE9CFC3D95B7037594B507E184C6A622F73A7FC338B45F990B565C136D576B73F1CF3DB147E5A9374FB81479DF306860D4672');
INSERT INTO "journal" VALUES('acme','c1-1',3,0,1,5,X'01789C8B36D6898E562A51D289564A5450D2510AF071F40B7175D13549314C067215929462810000B92309AC');
INSERT INTO "journal" VALUES('acme','c1-2',1,0,1,2,X'01789C8D8D4D0AC2301844AF22B3FEA88DF5375709A5C434B6813429492A16F1409EC38B99A2E0D6D93D9879231809810842D029187D35AE434D020A24EE30AED5377046B818AB9B51A61E1C31A8F5EBB912AC2EC6394F63922135D6380D5E11B46BBF702258E9BA49761930CEA9F76EE9CFC3D95B7037594B507E184C6A622F73A7FC338B45F990B565C136D576B73F1CF3DB147E5A9374FB81479DF306860D4672');
INSERT INTO "journal" VALUES('acme','c1-2',3,0,1,5,X'01789C8B36D6898E562A51D289564A5450D2510AF071F40B7175D13549314C067215929462810000B92309AC');
INSERT INTO "journal" VALUES('acme','c1-3',1,0,1,2,X'01789C8D8D4D0AC2301844AF22B3FEA88DF5375709A5C434B6813429492A16F1409EC38B99A2E0D6D93D9879231809810842D029187D35AE434D020A24EE30AED5377046B818AB9B51A61E1C31A8F5EBB912AC2EC6394F63922135D6380D5E11B46BBF702258E9BA49761930CEA9F76EE9CFC3D95B7037594B507E184C6A622F73A7FC338B45F990B565C136D576B73F1CF3DB147E5A9374FB81479DF306860D4672');
INSERT INTO "journal" VALUES('acme','c1-3',3,0,1,5,X'01789C8B36D6898E562A51D289564A5450D2510AF071F40B7175D13549314C067215929462810000B92309AC');
INSERT INTO "journal" VALUES('acme','c1-4',1,0,1,2,X'01789C8D8D4D0AC2301844AF22B3FEA88DF5375709A5C434B6813429492A16F1409EC38B99A2E0D6D93D9879231809810842D029187D35AE434D020A24EE30AED5377046B818AB9B51A61E1C31A8F5EBB912AC2EC6394F63922135D6380D5E11B46BBF702258E9BA49761930CEA9F76EE9CFC3D95B7037594B507E184C6A622F73A7FC338B45F990B565C136D576B73F1CF3DB147E5A9374FB81479DF306860D4672');
INSERT INTO "journal" VALUES('acme','c1-4',3,0,1,5,X'01789C8B36D6898E562A51D289564A5450D2510AF071F40B7175D13549314C067215929462810000B92309AC');
INSERT INTO "journal" VALUES('acme','c1-5',1,0,1,5,X'01789C8D8F4B0AC2301884AF52661D1FD1FAEA4ED09D880B77A194B48D6D204D4B9A8A453C90E7F062FE45C1ADB3FB601E8CE04C08B46070CA3BADAEDA168899400626EED0365737449CE1A28D4A1AE94B44685D36793D03C1E371D353B4F5D2F9C468AB10CD1994CDBFB06130D2169D2C08D0F4BEACEDE0EFABB436886C670C43565795F6495B4AF24CFFD4D092D58E6AA7633E9B878BE56A4D6B9DFBD56AAFF20F3CE2E191A7479001254F87EDF1BCDF8DC29CD34D042962D21B19C34E7A');
INSERT INTO "journal" VALUES('acme','c1-6',1,0,1,3,X'01789C8D8F5B0AC2301444B722F31D6A637D662B219498C63690A625B9158BB820D7E1C64C51F0D7F93B30F75C467226251218A2A5E8ECD585168A49183079870B8DBD4170868BF3B61E35751048D1AC5FCF95E4AA18E77C9A4847AABD0B16A262B0A1F9C289C1EBD04EBACD8071A66E084B7FEECF83870893F70C66E87B4775EA74EE947F66B19821666D59F04DB5DDED0FC7FC6D8A3FAD23DB7CE0A1964594174143E5BC01E4964997');
INSERT INTO "journal" VALUES('acme','c2-1',1,0,1,2,X'01789C8D8D4D0AC2301844AF22B3FEA88DF5375709A5C434B6813429492A16F1409EC38B99A2E0D6D93D9879231809810842D029187D35AE434D020A24EE30AED5377046B818AB9B51A61E1C31A8F5EBB912AC2EC6394F63922135D6380D5E11B46BBF702258E9BA49761930CEA9F76EE9CFC3D95B7037594B507E184C6A622F73A7FC338B45F990B565C136D576B73F1CF3DB147E5A9374FB81479DF306860D4672');
INSERT INTO "journal" VALUES('acme','c2-1',3,0,1,5,X'01789C8B36D6898E562A51D289564A5450D2510AF071F40B7175D13549314C067215929462810000B92309AC');
INSERT INTO "journal" VALUES('acme','c3-1',1,0,1,2,X'01789C8D8D4D0AC2301844AF22B3FEA88DF5375709A5C434B6813429492A16F1409EC38B99A2E0D6D93D9879231809810842D029187D35AE434D020A24EE30AED5377046B818AB9B51A61E1C31A8F5EBB912AC2EC6394F63922135D6380D5E11B46BBF702258E9BA49761930CEA9F76EE9CFC3D95B7037594B507E184C6A622F73A7FC338B45F990B565C136D576B73F1CF3DB147E5A9374FB81479DF306860D4672');
INSERT INTO "journal" VALUES('acme','c3-1',3,0,1,5,X'01789C8B36D6898E562A51D289564A5450D2510AF071F40B7175D13549314C067215929462810000B92309AC');
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
INSERT INTO "messages" VALUES('acme','gone',1,'question of gone-1','gone-1','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','gone',2,'answer of gone-1','gone-1','assistant','a PLANTED-4d1c b',1767355200000001,'{"finish_reason":"stop","error_code":null,"model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true},{"index":2,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":false}],"cited_indexes":[1,2],"grounding_warnings":["unknown_paths","weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
INSERT INTO "messages" VALUES('acme','c1',1,'question of c1-1','c1-1','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c1',2,'answer of c1-1','c1-1','assistant','a PLANTED-4d1c b',1767355200000001,'{"finish_reason":"stop","error_code":null,"model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true},{"index":2,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":false}],"cited_indexes":[1,2],"grounding_warnings":["unknown_paths","weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
INSERT INTO "messages" VALUES('acme','c1',3,'question of c1-2','c1-2','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c1',4,'answer of c1-2','c1-2','assistant','a PLANTED-4d1c b',1767355200000001,'{"finish_reason":"paused","error_code":null,"model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true}],"cited_indexes":[1],"grounding_warnings":["weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
INSERT INTO "messages" VALUES('acme','c1',5,'question of c1-3','c1-3','user','Where is the app made? (this one)',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c1',6,'answer of c1-3','c1-3','assistant','a PLANTED-4d1c b',1767355200000001,'{"finish_reason":"error","error_code":"LLM_UNAVAILABLE","model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true}],"cited_indexes":[1],"grounding_warnings":["weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
INSERT INTO "messages" VALUES('acme','c1',7,'question of c1-4','c1-4','user','Where is the app made? (this one)',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c1',8,'answer of c1-4','c1-4','assistant','a PLANTED-4d1c b',1767355200000001,'{"finish_reason":"stop","error_code":null,"model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true},{"index":2,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":false}],"cited_indexes":[1,2],"grounding_warnings":["unknown_paths","weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
INSERT INTO "messages" VALUES('acme','c1',9,'question of c1-5','c1-5','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c1',10,'answer of c1-5','c1-5','assistant','a PLANTED-4d1c b',1767355200000001,'{"finish_reason":"error","error_code":"LLM_UNAVAILABLE","model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true}],"cited_indexes":[1],"grounding_warnings":["weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
INSERT INTO "messages" VALUES('acme','c1',11,'question of c1-6','c1-6','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c1',12,'question of c1-7','c1-7','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c2',1,'question of c2-1','c2-1','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c2',2,'answer of c2-1','c2-1','assistant','a PLANTED-4d1c b',1767355200000001,'{"finish_reason":"paused","error_code":null,"model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true}],"cited_indexes":[1],"grounding_warnings":["weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
INSERT INTO "messages" VALUES('acme','c3',1,'question of c3-1','c3-1','user','Where is the app made?',1767355200000001,'{"finish_reason":null,"error_code":null,"model":null,"intent":null,"citations":[],"cited_indexes":[],"grounding_warnings":[],"retrieval_attempts":0,"degraded":[]}');
INSERT INTO "messages" VALUES('acme','c3',2,'answer of c3-1','c3-1','assistant','a PLANTED-4d1c b',1767355200000001,'{"finish_reason":"paused","error_code":null,"model":"scripted","intent":"codebase_question","citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true}],"cited_indexes":[1],"grounding_warnings":["weak_evidence"],"retrieval_attempts":2,"degraded":["grade"]}');
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
INSERT INTO "projects" VALUES('acme','p1','flask','ready',NULL,NULL,'{"classify_intent":true,"grade_evidence":true,"max_retrieval_attempts":2}',1,NULL,2,1,NULL,1767355200000001);
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
        terminator TEXT, number INTEGER NOT NULL DEFAULT 0, graph TEXT NOT NULL DEFAULT 'messages', turn_id TEXT NOT NULL DEFAULT '', cancel_requested INTEGER NOT NULL DEFAULT 0, resumes TEXT, resumed_by TEXT, decision TEXT, pause_expires_at INTEGER, journal_expires_at INTEGER, is_journal_removed INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, conversation_id) REFERENCES conversations (tenant, id)
            ON DELETE CASCADE
    );
INSERT INTO "runs" VALUES('acme','gone-1','ann','gone','p1','answer of gone-1','completed','me',1,1767355200000001,1767355201000001,6,'{"kind":"done","message_id":"answer of gone-1","model":"scripted","finish_reason":"stop","cited_indexes":[1,2],"grounding_warnings":["unknown_paths","weak_evidence"],"intent":"codebase_question","retrieval_attempts":2,"citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true},{"index":2,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":false}],"degraded":["classify","grade"],"clarification":null,"assumptions":[],"suggestions":[]}',1,'messages','gone-1',0,NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "runs" VALUES('acme','c1-1','ann','c1','p1','answer of c1-1','completed','me',1,1767355200000001,1767355201000001,6,'{"kind":"done","message_id":"answer of c1-1","model":"scripted","finish_reason":"stop","cited_indexes":[1,2],"grounding_warnings":["unknown_paths","weak_evidence"],"intent":"codebase_question","retrieval_attempts":2,"citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true},{"index":2,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":false}],"degraded":["classify","grade"],"clarification":null,"assumptions":[],"suggestions":[]}',1,'messages','c1-1',0,NULL,NULL,NULL,NULL,1767960000000001,0);
INSERT INTO "runs" VALUES('acme','c1-2','ann','c1','p1','answer of c1-2','paused','me',1,1767355200000001,1767355201000001,6,'{"kind":"paused","message_id":"answer of c1-2","interrupt_id":"interrupt of c1-2","node":"clarify","clarification":{"question":"Which one?","options":["this one","that one"]},"expires_at":1767441600000001}',2,'messages','c1-2',0,NULL,'c1-4','this one',1767441600000001,1767960000000001,0);
INSERT INTO "runs" VALUES('acme','c1-3','ann','c1','p1','answer of c1-3','failed','me',1,1767355200000001,1767355201000001,6,'{"kind":"failed","message_id":null,"code":"LLM_UNAVAILABLE","message":"The model went away.  ","finish_reason":"error","kept_through_id":null}',3,'messages','c1-2',0,'c1-2',NULL,NULL,NULL,1767960000000001,0);
INSERT INTO "runs" VALUES('acme','c1-4','ann','c1','p1','answer of c1-4','completed','me',1,1767355200000001,1767355201000001,6,'{"kind":"done","message_id":"answer of c1-4","model":"scripted","finish_reason":"stop","cited_indexes":[1,2],"grounding_warnings":["unknown_paths","weak_evidence"],"intent":"codebase_question","retrieval_attempts":2,"citations":[{"index":1,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":true},{"index":2,"file_path":"src/é [1].py","start_line":3,"end_line":9,"language":"python","symbol":null,"commit_sha":"0000000000000000000000000000000000000000","score":0.123456789,"url":null,"cited":false}],"degraded":["classify","grade"],"clarification":null,"assumptions":[],"suggestions":[]}',4,'messages','c1-2',0,'c1-2',NULL,NULL,NULL,1767960000000001,0);
INSERT INTO "runs" VALUES('acme','c1-5','ann','c1','p1','answer of c1-5','failed','me',1,1767355200000001,1767355200000001,10006,'{"kind":"failed","message_id":"answer of c1-5","code":"LLM_UNAVAILABLE","message":"The model went away.  ","finish_reason":"error","kept_through_id":5}',5,'messages','c1-5',0,NULL,NULL,NULL,NULL,1767960000000001,0);
INSERT INTO "runs" VALUES('acme','c1-6','ann','c1','p1','answer of c1-6','running','me',1,1767355200000001,NULL,3,NULL,6,'messages','c1-6',0,NULL,NULL,NULL,NULL,1767960000000001,0);
INSERT INTO "runs" VALUES('acme','c1-7','ann','c1','p1','answer of c1-7','queued','me',0,1767355200000001,NULL,0,NULL,7,'messages','c1-7',0,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "runs" VALUES('acme','c2-1','ann','c2','p1','answer of c2-1','paused','me',1,1767355200000001,1767355201000001,6,'{"kind":"paused","message_id":"answer of c2-1","interrupt_id":"interrupt of c2-1","node":"clarify","clarification":{"question":"Which one?","options":["this one","that one"]},"expires_at":1767441600000001}',1,'messages','c2-1',0,NULL,NULL,NULL,1767441600000001,1767960000000001,0);
INSERT INTO "runs" VALUES('acme','c3-1','ann','c3','p1','answer of c3-1','expired','me',1,1767355200000001,1767355201000001,6,'{"kind":"paused","message_id":"answer of c3-1","interrupt_id":"interrupt of c3-1","node":"clarify","clarification":{"question":"Which one?","options":["this one","that one"]},"expires_at":1767441600000001}',1,'messages','c3-1',0,NULL,NULL,NULL,1767441600000001,1767960000000001,0);
CREATE INDEX members_of_project ON members (tenant, project_id);
CREATE INDEX jobs_of_project ON jobs (tenant, project_id, started_at, id);
CREATE UNIQUE INDEX one_live_job_a_project ON jobs (tenant, project_id)
        WHERE finished_at IS NULL
    ;
CREATE INDEX conversations_of_principal
        ON conversations (tenant, subject, created_at, id)
    ;
CREATE INDEX conversations_of_project ON conversations (tenant, project_id);
CREATE UNIQUE INDEX runs_by_number ON runs (tenant, conversation_id, number);
CREATE UNIQUE INDEX one_running_run_a_conversation ON runs (tenant, conversation_id)
        WHERE state = 'running'
    ;
CREATE UNIQUE INDEX one_pending_pause_a_conversation ON runs (tenant, conversation_id)
        WHERE state = 'paused' AND resumed_by IS NULL
    ;
CREATE INDEX running_runs ON runs (tenant, subject) WHERE state = 'running';
CREATE INDEX live_runs ON runs (tenant, conversation_id, number) WHERE ended_at IS NULL;
CREATE INDEX due_pauses ON runs (pause_expires_at)
        WHERE state = 'paused' AND resumed_by IS NULL
    ;
CREATE INDEX due_journals ON runs (journal_expires_at)
        WHERE journal_expires_at IS NOT NULL AND ended_at IS NOT NULL
    ;
CREATE INDEX idempotency_that_expires ON idempotency (expires_at);
CREATE INDEX idempotency_of_conversation ON idempotency (tenant, conversation_id)
        WHERE conversation_id IS NOT NULL
    ;
CREATE INDEX feedback_of_conversation ON feedback (tenant, conversation_id);
COMMIT;
