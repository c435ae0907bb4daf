-- Returns the dates that a term may mean; none if it is no date. The day comes before the month, or the month before the
-- day where both are possible and no point separates them.
create or replace function search_dates(term text) returns date[] language plpgsql stable as $$
declare
  folded constant text := search_fold(term);
  words constant text[] := array_remove(search_words(regexp_replace(folded, '(\d)(st|nd|rd|th)\y|\y(de|del|of|d)\y', '\1', 'g')), '');
  part text[];
begin
  part := coalesce(regexp_match(term, '^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})$'), regexp_match(term, '^(\d{4})(\d\d)(\d\d)$'),
    regexp_match(folded, '^(\d{4}) ?[年년] ?(\d{1,2}) ?[月월] ?(\d{1,2}) ?[日일]$'),
    (select array[m[3], m[2], m[1]] from regexp_match(term, '^(\d{1,2})\.(\d{1,2})\.(\d{4}|\d\d)$') m where m is not null));
  if part is not null then return array_remove(array[search_date(part[1], part[2], part[3])], null); end if;
  part := regexp_match(term, '^(\d{1,2})[-/](\d{1,2})[-/](\d{4})$');
  if part is not null then
    return array_remove(array[search_date(part[3], part[2], part[1]), search_date(part[3], part[1], part[2])], null);
  end if;
  -- A name of a month between, before or after the day and the year.
  return array(
    select distinct day from (
      select array_to_string(array(select word from unnest(words) word where word !~ '^[0-9]'), ' ') as name,
        array(select word from unnest(words) word where word ~ '^[0-9]{1,4}$') as numbers) given
      cross join unnest(search_months()) with ordinality months (names, month)
      cross join lateral search_date(numbers[case when length(numbers[1]) = 4 then 1 else 2 end], month::text,
        numbers[case when length(numbers[1]) = 4 then 2 else 1 end]) day
    where cardinality(numbers) = 2 and name = any(string_to_array(names, '|')) and day is not null);
end $$;
