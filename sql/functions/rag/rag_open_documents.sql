-- Creates a collection of an owner's documents, or updates its selection, and returns its id. Null: the name belongs to
-- another owner or to a collection of files. Waits for document changes in progress, which searched for collections
-- before this one or by its old selection (see rag_affected). So a run that reads the documents afterwards sees those
-- changes.
create or replace function rag_open_documents(p_name text, owner integer, chosen jsonb) returns integer language plpgsql as $$
declare
  opened integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('millrace.rag:' || coalesce(owner, 0), 0));
  update rag_collection c set selection = chosen
  where c.name = p_name and c.deleted_at is null and c.selection is not null and c.owner_id is not distinct from owner
  returning c.id into opened;
  if found then return opened; end if;
  insert into rag_collection (name, owner_id, selection) values (p_name, owner, chosen)
  on conflict (name) where deleted_at is null do nothing returning id into opened;
  return opened;
end $$;
