-- 200 collections of 100 files with ten chunks each.

insert into rag_collection (name, version, document_count, chunk_count, term_count, dictionaries)
select 'collection-' || n, 1, 100, 1000, 30000, '{english_stem}' from growth.size(200) size, generate_series(1, size) n;

insert into rag_file (collection_id, source, sha256, byte_size, format, analysis, chunk_count, dictionary)
select c.id, 'notes/' || n || '.md', sha256((c.id || ' ' || n)::bytea), 3000, 'markdown', 1, 10, 'english_stem'
from rag_collection c, generate_series(1, 100) n;

insert into rag_chunk (file_id, ordinal, collection_id, number, content, start_offset, end_offset, start_line, end_line, terms, common_terms)
select f.id, k, f.collection_id, 10 * (row_number() over (partition by f.collection_id, k order by f.id) - 1) + k, content,
  k * 300, k * 300 + 299, 1 + k * 10, 10 + k * 10, t.terms, t.common_terms
from rag_file f, generate_series(0, 9) k
  cross join lateral (select string_agg(growth.word(1 + growth.pick(f.id::int, k * 30 + w, 3000)), ' ') from generate_series(1, 30) w) words (content)
  cross join lateral rag_terms(content, 'english_stem') t;

select rag_merge_postings(collection_id, array_agg(id), '{}') from rag_file group by collection_id;
