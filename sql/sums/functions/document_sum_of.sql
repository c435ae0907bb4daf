create or replace function document_sum_of(d document) returns setof document_sum language sql immutable as $$
  select null::bigint, d.owner_id, 1, d.byte_size, coalesce(d.page_count, 0)
  where d.owner_id is not null and d.pruned_at is null
$$;
