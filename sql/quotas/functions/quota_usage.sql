-- Returns an account's usage of a kind; account 0 is the service, which has webhook endpoints. Documents count until their bytes are deleted, including those in the trash.
create or replace function quota_usage(account integer, kind text) returns bigint language sql stable
  -- Forces index scans regardless of the statistics, because connections cache plans from when tables were small.
  set enable_seqscan = off as $$
  select case quota_usage.kind
    when 'documents' then (select coalesce(sum(documents), 0) from document_sum where owner_id = account)
    when 'bytes' then (select coalesce(sum(bytes), 0) from document_sum where owner_id = account)
    when 'pages' then (select coalesce(sum(pages), 0) from document_sum where owner_id = account)
    when 'organizations' then (select count(*) from organization where created_by = account and deleted_at is null)
    when 'keys' then (select count(*) from api_key where account_id = account)
    when 'webhook_endpoints' then (select count(*) from webhook_endpoint
      where (account_id = account or (account = 0 and account_id is null)) and url is not null and deleted_at is null)
    when 'pending_deliveries' then (select coalesce(sum(deliveries), 0) from webhook_pending_sum where account_id = account)
    when 'conversations' then (select count(*) from ai_conversation where owner_id = account)
    when 'collections' then (select count(*) from rag_collection where owner_id = account and deleted_at is null)
    when 'speech_characters' then (select coalesce(sum(characters), 0) from voice_preview where owner_id = account)
    when 'schedules' then (select count(*) from schedule where owner_id = account)
    when 'worker_queues' then (select count(*) from worker_queue where created_by = account)
    when 'waiting_jobs' then (select count(*) from job where owner_id = account and status in ('waiting', 'scheduled', 'available'))
  end
$$;
