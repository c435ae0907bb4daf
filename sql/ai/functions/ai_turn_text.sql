-- Returns the text that a turn's subscribers have seen: the pieces since the last restart.
create or replace function ai_turn_text(job_id uuid) returns text language sql stable as $$
  select coalesce(string_agg(e.data ->> 'content', '' order by e.seq), '') from job_event e
  where e.job_id = ai_turn_text.job_id and e.kind = 'chunk' and e.seq > coalesce((
    select max(r.seq) from job_event r where r.job_id = ai_turn_text.job_id and r.kind = 'restart'), 0)
$$;
