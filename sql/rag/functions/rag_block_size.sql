-- Returns the number of chunks in a block of postings. Larger blocks need fewer rows, but changes rewrite longer ones.
create or replace function rag_block_size() returns integer language sql immutable parallel safe return 8192;
