-- Returns the position of the first match of a query in a vector. Returns 1 if none of the first 100 words that it names begins
-- a match. A match spans at most 12 words.
create or replace function search_first_match(vector tsvector, query tsquery) returns integer language sql stable as $$
  with word as materialized (
    select lexeme, place from unnest(vector) entry cross join unnest(entry.positions) place
  ), sought as (
    select part[1] as lexeme, part[2] is not null as is_prefix from regexp_matches(query::text, '''([^'']+)''(:\*)?', 'g') part
  ), candidate as materialized (
    select distinct place from word
    where lexeme in (select lexeme from sought where not is_prefix)
      or lexeme ^@ any(array(select lexeme from sought where is_prefix))
    order by place limit 100
  )
  select coalesce((
    select place from candidate
    where exists (
      select from (select string_agg(lexeme || ':' || word.place, ' ')::tsvector as near from word
        where word.place between candidate.place and candidate.place + 11) around where near @@ query)
    order by place limit 1), 1)
$$;
