-- Returns a query for any of these queries; null without any. Ignores nulls.
create or replace function search_any_of(queries tsquery[]) returns tsquery language sql immutable parallel safe as $$
  select string_agg('(' || query::text || ')', ' | ')::tsquery from unnest(queries) query where query is not null
$$;
