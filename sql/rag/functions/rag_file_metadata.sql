-- Returns the metadata of a file's chunks that are those of the file, with the fields of its document, which is null for a file.
create or replace function rag_file_metadata(file rag_file, document document) returns jsonb language sql stable parallel safe as $$
  select file.metadata || case when file.document_id is null then
    jsonb_build_object('source', file.source, 'file_name', name, 'format', file.format,
      'extension', lower(coalesce(substring(name from '.\.([^.]*)$'), '')))
  else
    jsonb_build_object('source', file.source, 'file_name', document.title, 'format', file.format, 'extension', '',
      'document_id', file.document_id, 'title', document.title, 'kind', document.kind, 'tags', document.tags,
      'document_date', document.document_date, 'received_at', iso(document.received_at), 'document_source', document.source,
      'channel', document.channel)
  end
  from (select substring(file.source from '[^/]*$')) named (name)
$$;
