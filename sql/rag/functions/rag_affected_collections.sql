-- Returns the collections that may contain, or may gain, one of an owner's changed documents. Until the transaction
-- ends, the owner's collections cannot be opened (see rag_open_documents).
create or replace function rag_affected_collections(owner integer, documents bigint[]) returns table (id integer, name text) language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('millrace.rag:' || coalesce(owner, 0), 0));
  -- A separate statement, so that it sees commits from before the lock.
  return query
    select c.id, c.name from rag_collection c
    where (c.owner_id = owner or (owner is null and c.owner_id is null)) and c.selection is not null and c.deleted_at is null
      and (jsonb_typeof(c.selection -> 'ids') is distinct from 'array'
        or exists (select from unnest(documents) changed where c.selection -> 'ids' @> to_jsonb(changed)))
    order by c.id;
end $$;
