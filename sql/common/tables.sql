-- Returns a timestamp in the format of the API: ISO 8601 in UTC.
create function iso(at timestamptz) returns text
  language sql immutable parallel safe
  return to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

create extension if not exists unaccent;
create extension if not exists pg_trgm;
create extension if not exists btree_gin;
