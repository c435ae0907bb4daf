-- Returns a timestamp in the format of the API: ISO 8601 in UTC.
create function iso(at timestamptz) returns text
  language sql immutable parallel safe
  return to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

create extension if not exists unaccent;
create extension if not exists pg_trgm;
create extension if not exists btree_gin;

-- Removes accents but does not stem words, because a document may be in any language.
create text search configuration folded (copy = simple);
alter text search configuration folded
  alter mapping for hword, hword_part, word, hword_asciipart, asciihword, asciiword with unaccent, simple;
