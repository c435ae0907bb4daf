-- A query for words as one for the words of an owner, which asks an `owned_vector`. In the text of a query each word is quoted,
-- and a quote within it doubled.
create or replace function owned_query(owner integer, query tsquery) returns tsquery language sql immutable parallel safe
  return regexp_replace(query::text, $$'((?:[^']|'')+)'$$, '''' || owner_prefix(owner) || $$\1'$$, 'g')::tsquery;
