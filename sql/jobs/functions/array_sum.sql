-- Adds two arrays element by element. The shorter one is padded with 0.
create or replace function array_sum(one bigint[], other bigint[]) returns bigint[] language sql immutable parallel safe as $$
  select array_agg(coalesce(a, 0) + coalesce(b, 0) order by n) from unnest(one, other) with ordinality as pairs(a, b, n)
$$;
