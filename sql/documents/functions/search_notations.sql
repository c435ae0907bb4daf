-- Returns other notations of a number or a date. `1284.50` gives 1,284.50, 1.284,50, 1'284.50 and 1 284,50.
-- `2026-03-14` gives 14.3.2026, 3/14/2026 and 14 March 2026, in the languages of `months`. Returns null for anything
-- else, and for numbers with only one notation, such as a year or an amount below 1,000 without decimals.
create or replace function search_notations(term text) returns text[] language plpgsql stable as $$
declare
  -- Month names without accents, like indexed words.
  months constant text[] := array[
    'january jan januar janvier enero gennaio januari janeiro', 'february feb februar fevrier febrero febbraio februari fevereiro',
    'march mar marz mars marzo maart marco', 'april apr avril abril aprile', 'may mai mayo maggio mei maio',
    'june jun juni juin junio giugno junho', 'july jul juli juillet julio luglio julho',
    'august aug aout agosto augustus', 'september sep sept septembre septiembre settembre setembro',
    'october oct okt oktober octobre octubre ottobre outubro', 'november nov novembre noviembre novembro',
    'december dec dez dezember decembre diciembre dicembre dezembro'];
  normalized constant text := unaccent(lower(btrim(term, ' $€£¥')));
  part text[];
  dates date[] := '{}';
  whole text;
  decimals text;
begin
  -- The first separator groups thousands. A different one marks the decimals.
  part := regexp_match(normalized, '^(\d{1,3}(?:([,.'' ’])\d{3})(?:\2\d{3})*|\d{1,15})(?:([.,])(\d{1,2}))?$');
  if part is not null and (part[2] is null or part[2] is distinct from part[3]) then
    whole := regexp_replace(part[1], '\D', '', 'g');
    decimals := part[4];
    if length(whole) > 15 or (decimals is null and (length(whole) < 4 or part[2] is null and whole between '1900' and '2099')) then
      return null;
    end if;
    return array(
      select distinct regexp_replace(whole, '(\d)(?=(\d{3})+$)', '\1' || groups, 'g') || coalesce(point || decimals, '')
      from (values ('', '.'), ('', ','), (',', '.'), ('.', ','), ('''', '.'), (' ', ',')) notation (groups, point));
  end if;

  part := coalesce(
    regexp_match(normalized, '^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})$'),
    (select array[m[3], m[2], m[1]] from regexp_match(normalized, '^(\d{1,2})\.(\d{1,2})\.(\d{4})$') m where m is not null));
  if part is null then
    select array[m[3], month::text, m[1]] into part
    from coalesce(
        regexp_match(normalized, '^(\d{1,2})(?:st|nd|rd|th|\.)? (?:de )?([a-z]+)\.? (?:de )?(\d{4})$'),
        (select array[m[2], m[1], m[3]] from regexp_match(normalized, '^([a-z]+)\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})$') m where m is not null)) m,
      unnest(months) with ordinality names (names, month)
    where m[2] = any(string_to_array(names, ' '));
  end if;
  if part is not null then
    dates := array[search_date(part[1], part[2], part[3])];
  else
    part := regexp_match(normalized, '^(\d{1,2})[-/](\d{1,2})[-/](\d{4})$');
    -- Tries the day first, which is the more common order, and the month first.
    dates := array[search_date(part[3], part[2], part[1]), search_date(part[3], part[1], part[2])];
  end if;
  return nullif(array(
    select distinct notation from unnest(dates) day
    cross join lateral (values (extract(year from day)::text, extract(month from day)::text, extract(day from day)::text)) n (y, m, d)
    cross join lateral (values (lpad(m, 2, '0'), lpad(d, 2, '0'), right(y, 2))) l (mm, dd, yy)
    cross join lateral unnest(
      array[y || '-' || mm || '-' || dd, y || '/' || mm || '/' || dd, y || mm || dd,
        d || '.' || m || '.' || y, dd || '.' || mm || '.' || y, d || '.' || m || '.' || yy, dd || '.' || mm || '.' || yy,
        d || '/' || m || '/' || y, dd || '/' || mm || '/' || y, m || '/' || d || '/' || y, mm || '/' || dd || '/' || y,
        dd || '-' || mm || '-' || y, mm || '-' || dd || '-' || y]
      || array(
        select unnest(array[d || ' ' || name || ' ' || y, d || ' de ' || name || ' de ' || y, name || ' ' || d || ' ' || y,
          d || ending || ' ' || name || ' ' || y, name || ' ' || d || ending || ' ' || y])
        from string_to_table(months[m::integer], ' ') name,
          (select case when d ~ '^1.$' then 'th' when d ~ '1$' then 'st' when d ~ '2$' then 'nd' when d ~ '3$' then 'rd' else 'th' end
            as ending) english)
    ) notation
    where day is not null), '{}');
end $$;
