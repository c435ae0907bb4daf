-- A connection keeps the plans of its statements, and those made while the tables were small and unknown to the planner
-- read them whole: a flood made every claim of its first minute scan all of it. These functions find rows by their keys
-- alone, whatever the statistics say.
alter function job_send(uuid[], integer) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_claim(uuid, uuid[], integer[]) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_progress(jsonb) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_finish(jsonb, integer) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_send_heads(text[]) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_enqueue(jsonb) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_recover(interval, integer) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
alter function job_cancel(uuid) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off;
