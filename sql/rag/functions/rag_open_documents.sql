-- Creates a collection of an owner's documents, or updates its selection and metadata, and returns its id. Returns null if the name
-- belongs to another owner or to a collection of files. Waits for document changes in progress, which searched for
-- collections before this one or by its old selection (see rag_affected_collections). So a run that reads the documents
-- afterwards sees those changes.
create or replace function rag_open_documents(p_name text, owner integer, new_selection jsonb, new_metadata jsonb) returns integer language plpgsql as $$
declare
  collection_id integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('millrace.rag:' || coalesce(owner, 0), 0));
  update rag_collection c set selection = new_selection, document_metadata = new_metadata
  where c.name = p_name and c.deleted_at is null and c.selection is not null and c.owner_id is not distinct from owner
  returning c.id into collection_id;
  if found then return collection_id; end if;
  insert into rag_collection (name, owner_id, selection, document_metadata) values (p_name, owner, new_selection, new_metadata)
  on conflict (name) where deleted_at is null do nothing returning id into collection_id;
  return collection_id;
end $$;
