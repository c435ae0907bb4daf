-- Limits a query to the words of an owner, to match an `owned_vector`. Relies on the text form of a tsquery, which
-- quotes each word and doubles quotes within a word.
create or replace function owned_query(owner integer, query tsquery) returns tsquery language sql immutable parallel safe
  return regexp_replace(query::text, $$'((?:[^']|'')+)'$$, '''' || owner_prefix(owner) || $$\1'$$, 'g')::tsquery;
