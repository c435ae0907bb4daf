-- A million documents with blobs and three million pages. Three in ten belong to the big owner.

call growth.drop_indexes('document');
call growth.drop_indexes('document_page');
call growth.drop_indexes('search_word');

create table growth.document as
select n, growth.owner(n, size, 30, growth.size(10000)) as owner_id, growth.moment(n, size, '1 year') as at,
  (array['invoice', 'invoice', 'invoice', 'letter', 'letter', 'contract', 'receipt', 'report', 'other', 'other'])[1 + n % 10] as kind,
  -- Up to three of 200 tags. Tags with lower numbers are more frequent.
  array(select distinct 'tag-' || (1 + floor(power(200, growth.pick(n, k, 1000) / 1000.0)))::int
    from generate_series(1, n % 4) k) as tags
from growth.size(975000) size, generate_series(1, size) n;

insert into document (owner_id, title, kind, media_type, byte_size, sha256, page_count, document_date, received_at, source,
  note, protected, tags, created_at, deleted_at, expires_at)
select owner_id, initcap(kind) || ' ' || n || ' ' || growth.word(1 + growth.pick(n, 11, 3000)), kind,
  case when n % 10 = 0 then 'image/png' else 'application/pdf' end, 300, sha256(n::text::bytea), 1 + n % 5, at::date, at, 'upload',
  case when n % 20 = 0 then 'About ' || growth.word(1 + growth.pick(n, 12, 3000)) end, n % 200 = 0, tags, at,
  case when n % 50 = 7 then at + interval '1 day' end,
  -- Trashed documents are not due for deletion yet.
  case when n % 50 = 7 then now() + interval '30 days' end
from growth.document order by n;
drop table growth.document;
-- Newer versions of some documents. Only a few owners have them, because each insert locks its owner.
insert into document (owner_id, title, kind, media_type, byte_size, sha256, page_count, document_date, supersedes_id, tags)
select owner_id, title, kind, media_type, byte_size, sha256((id || ' again')::bytea), page_count, document_date, id, tags
from document where id % 12 = 0 and deleted_at is null and (owner_id = 2 or owner_id % 10 = 4) order by id;
call growth.restore_indexes();

insert into blob (sha256, byte_size, created_at) select distinct sha256, 300, created_at from document;
insert into blob_chunk (blob_id, ordinal, bytes) select id, 0, convert_to(repeat(encode(left_of, 'hex'), 5), 'utf8')
from blob, substring(sha256 from 1 for 30) left_of;

insert into account_export (id, account_id, sha256, byte_size, created_at)
select growth.id(at), account, b.sha256, b.byte_size, at
from growth.size(10000) size, generate_series(1, size) account, generate_series(1, case when account <= 3 then 20 else 2 end) n,
  growth.moment(n, 20, '6 days') at, (select * from blob order by id limit 1) b;

-- Pages share at most 10,000 texts of 50 words, in which the n-th word is about 1/n as frequent as the first. One page
-- in ten has a unique number. Search vectors are combined from stored ones, because computing them takes longest.
call growth.drop_indexes('document_page');
call growth.drop_indexes('search_word');
create table growth.text as
select n, text, search_vector(text) as search from (
  select n, string_agg(growth.word(floor(power(50000::float8, growth.pick(n, k, 1000000) / 1000000::float8))::int), ' ' order by k) as text
  from generate_series(0, least(10000, growth.size(1000000)) - 1) n, generate_series(21, 70) k group by n) texts;
alter table growth.text add primary key (n);
analyze growth.text;

insert into document_page (document_id, owner_id, page_number, status, method, model, detail, text, search, image, width, height, job_id, updated_at)
select d.id, d.owner_id, p, case when unread then 'unread' else 'read' end,
  case when unread then 'none' when d.media_type = 'image/png' then 'vision' else 'text_layer' end,
  case when not unread and d.media_type = 'image/png' then 'tesseract/eng' end, case when unread then 'The page is empty' end,
  case when unread then '' when numbered then t.text || ' inv' || number else t.text end,
  case when unread then ''::tsvector when numbered then t.search || ('inv:1 ' || number || ':2')::tsvector else t.search end,
  case when p = 1 and d.id % 100 < 2 then decode('89504e470d0a1a0a', 'hex') end, 600, 800, gen_random_uuid(), d.created_at
from document d, generate_series(1, d.page_count) p,
  lateral (select d.id * 5 + p as number, (d.id * 5 + p) % 10 = 0 as numbered, (d.id * 5 + p) % 51 = 0 as unread) page
join growth.text t on t.n = number * 7 % least(10000, growth.size(1000000));

-- The big owner's first document is the longest.
insert into document_page (document_id, owner_id, page_number, status, method, text, search, job_id)
select first.id, 2, p, 'read', 'text_layer', t.text, t.search, gen_random_uuid()
from (select min(id) as id from document where owner_id = 2 and deleted_at is null) first, growth.size(5000) size,
  generate_series(10, size) p join growth.text t on t.n = p % least(10000, growth.size(1000000));
update document set page_count = pages.n from (select document_id, max(page_number) as n from document_page
  where document_id = (select min(id) from document where owner_id = 2 and deleted_at is null) group by 1) pages where id = document_id;

-- The big owner and documents without an owner have all words, every other owner those of five texts.
insert into search_word (owner_id, word)
select owner, word from unnest(array[0, 2]) owner, (select distinct word from growth.text, unnest(tsvector_to_array(search)) word) words
union select owner_id, word from (select distinct owner_id from document where owner_id <> 2) owners, generate_series(1, 5) k,
  growth.text t, unnest(tsvector_to_array(search)) word
where t.n = (owner_id::bigint * 13 + k) % least(10000, growth.size(1000000))
union select coalesce(owner_id, 0), (document_id * 5 + page_number)::text from document_page where (document_id * 5 + page_number) % 10 = 0
on conflict do nothing;
call growth.restore_indexes();
drop table growth.text;
