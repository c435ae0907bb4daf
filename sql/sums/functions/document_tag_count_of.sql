create or replace function document_tag_count_of(d document) returns setof document_tag_count language sql immutable as $$
  select null::bigint, coalesce(d.owner_id, 0), label, 1, (d.superseded_by_id is not null)::int
  from unnest(d.tags) label where d.deleted_at is null
$$;
