-- Updates the postings of a collection for a swap: appends the chunks of added files, and removes those of removed ones. Call
-- it in the transaction of the swap, before the removed files are deleted.
create or replace function rag_merge_postings(collection integer, added_files bigint[], removed_files bigint[])
returns void language sql as $$
  with change as materialized (
    select term, block, string_agg(posting, '') filter (where is_added) as added,
      array_agg(substr(posting, 1, 2)) filter (where not is_added) as removed
    from (
      select is_added, terms, common_terms, number / rag_block_size() as block,
        ((number % rag_block_size()) << 16) | rag_length_code(cardinality(terms)) as base
      from (
        select *, true as is_added from rag_chunk where file_id = any(added_files)
        union all
        select *, false from rag_chunk where file_id = any(removed_files)) changed offset 0) chunk
      cross join lateral (
        select term, int4send(base | (least(count(*), 255)::integer << 8)) as posting from unnest(terms) term group by term
        union all
        select term, int4send(base | (1 << 8)) from unnest(common_terms) term where term <> all(terms)) posted
    group by term, block
  ), merged as materialized (
    select change.term, change.block, old.row_tid, coalesce(kept.postings, '') || coalesce(change.added, '') as postings
    from change
      left join lateral (
        select ctid as row_tid, p.postings from rag_posting p
        where p.collection_id = collection and p.term = change.term and p.block = change.block offset 0) old on true
      cross join lateral (
        select case when change.removed is null then old.postings else (
          select string_agg(piece, '') from (
            select substr(old.postings, 1 + 4 * i, 4) as piece from generate_series(0, length(old.postings) / 4 - 1) i) pieces
          where substr(piece, 1, 2) not in (select unnest(change.removed))) end as postings) kept
  ), emptied as (
    delete from rag_posting where ctid = any(array(select row_tid from merged where postings = ''))
  )
  insert into rag_posting as p (collection_id, term, block, postings)
  select collection, term, block, postings from merged where postings <> ''
  on conflict (collection_id, term, block) do update set postings = excluded.postings
$$;
