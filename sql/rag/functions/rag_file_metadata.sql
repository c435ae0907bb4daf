-- Returns the metadata of a file's chunks that are those of the file.
create or replace function rag_file_metadata(file rag_file) returns jsonb language sql stable parallel safe as $$
  select jsonb_build_object('source', file.source, 'file_name', name, 'format', file.format,
      'extension', case when file.title is null then lower(coalesce(substring(name from '.\.([^.]*)$'), '')) else '' end)
    || case when file.document_id is null then '{}' else jsonb_build_object('document_id', file.document_id) end
  from (select coalesce(file.title, substring(file.source from '[^/]*$'))) named (name)
$$;
