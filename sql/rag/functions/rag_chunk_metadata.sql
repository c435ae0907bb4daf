-- Returns the metadata of a chunk, without those of its file.
create or replace function rag_chunk_metadata(chunk rag_chunk) returns jsonb language sql stable parallel safe as $$
  select jsonb_build_object('chunk_index', chunk.ordinal, 'start_line', chunk.start_line, 'end_line', chunk.end_line,
    'page', chunk.page, 'heading', chunk.heading)
$$;
