-- Returns a transcription as public JSON for lists. Reads of a single one add `text` and `segments`.
create or replace function voice_transcription_json(t voice_transcription) returns json language sql stable parallel safe
  return json_build_object('id', t.id, 'status', t.status, 'job_id', t.job_id, 'document_id', t.document_id,
    'provider', t.provider, 'model', t.model, 'requested_language', t.requested_language, 'language', t.language,
    'duration_seconds', t.duration_seconds, 'usage', t.usage, 'cost', t.cost,
    'error', case when t.error_code is not null then json_build_object('code', t.error_code, 'detail', coalesce(t.error_detail, '')) end,
    'created_at', iso(t.created_at), 'finished_at', iso(t.settled_at));
