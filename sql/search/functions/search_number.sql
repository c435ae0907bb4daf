-- Returns the other notations of a number as words, for example {1,284,50} and {1284,50} for 1284.50, or null for anything
-- else. Separators of thousands and of decimals do not matter, because each group of digits is a word. A year and an amount
-- below 1,000 have one notation. Three or more groups of digits that are no amount, such as those of a phone number, are
-- also one word.
create or replace function search_number(term text) returns table (words text[]) language plpgsql immutable rows 2 as $$
declare
  amount constant text := btrim(term, ' $€£¥+-');
  part text[] := regexp_match(amount, '^(\d{1,3}(?:([,.'' ’])\d{3})(?:\2\d{3})*|\d{1,15})(?:([.,])(\d{1,4}))?$');
  whole text := regexp_replace(part[1], '\D', '', 'g');
begin
  if part is null or part[2] = part[3] then
    if amount ~ '^(?:[A-Z]{2})?\d+(?:[-. /()]{1,2}\d+){2,9}$' then
      return query select search_words(regexp_replace(amount, '[^A-Za-z0-9]', '', 'g'));
    end if;
    return;
  end if;
  if length(whole) > 15 or length(whole) < 4 or part[4] is null and part[2] is null and whole between '1900' and '2099' then return; end if;
  return query values (array_remove(array[whole, part[4]], null)),
    (string_to_array(regexp_replace(whole, '(\d)(?=(\d{3})+$)', '\1 ', 'g'), ' ') || array_remove(array[part[4]], null));
end $$;
