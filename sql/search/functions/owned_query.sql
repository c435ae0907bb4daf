-- Limits a query to the words of an owner, to match an `owned_vector`. The index has no positions, so words in sequence
-- match in any order. Relies on the text form of a tsquery, which quotes each word. Words have no quotes.
create or replace function owned_query(owner integer, query tsquery) returns tsquery language sql immutable parallel safe
  return regexp_replace(replace(query::text, '<->', '&'), $$'([^']+)'$$, '''' || owner_prefix(owner) || $$\1'$$, 'g')::tsquery;
