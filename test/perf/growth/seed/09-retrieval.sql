-- 200 collections of 100 files with ten chunks each.

insert into rag_collection (name, version, document_count, chunk_count, term_count)
select 'collection-' || n, 1, 100, 1000, 30000 from growth.size(200) size, generate_series(1, size) n;

insert into rag_file (collection_id, source, sha256, byte_size, format, analysis, chunk_count, term_count)
select c.id, 'notes/' || n || '.md', sha256((c.id || ' ' || n)::bytea), 3000, 'markdown', 1, 10, 300
from rag_collection c, generate_series(1, 100) n;

insert into rag_chunk (file_id, ordinal, content, start_offset, end_offset, start_line, end_line, terms)
select f.id, k, (select string_agg(growth.word(1 + growth.pick(f.id::int, k * 30 + w, 3000)), ' ') from generate_series(1, 30) w),
  k * 300, k * 300 + 299, 1 + k * 10, 10 + k * 10, decode(repeat(md5(f.id || ' ' || k), 8), 'hex') from rag_file f, generate_series(0, 9) k;
