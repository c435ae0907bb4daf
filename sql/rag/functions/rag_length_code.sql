-- Returns a number of terms as one byte, on a logarithmic scale with 16 steps for each doubling. A reader computes
-- 2 ^ (code / 16) - 1.
create or replace function rag_length_code(length integer) returns integer language sql immutable parallel safe
  return least(255, round(16 * ln(length + 1) / ln(2::float8)))::integer;
