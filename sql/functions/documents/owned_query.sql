-- Limits a query to the words of an owner, for an `owned_vector`. The text of a tsquery quotes each word and doubles
-- quotes within it.
create or replace function owned_query(owner integer, query tsquery) returns tsquery language sql immutable parallel safe
  return regexp_replace(query::text, $$'((?:[^']|'')+)'$$, '''' || owner_prefix(owner) || $$\1'$$, 'g')::tsquery;
