-- Returns the words around the first match of a query in a part of a text, see `page_part`. A word of the text
-- is a run of letters, a run of digits, or a character of a script without spaces. So a position in the part's vector is the
-- number of a word in the text.
create or replace function search_snippet(content text, part integer, vector tsvector, query tsquery) returns text
language plpgsql stable as $$
declare
  word constant text := format('[0-9]+|[%1$s]|[^\x01-@\[-`\x7b-\x7f%1$s%2$s]+', search_pairs(), search_separators());
  shown constant text := search_joined(page_part(content, part));
  first integer := search_first_match(vector, query);
  start integer;
  stop integer;
begin
  start := case when first <= 8 then 1 else greatest(1, regexp_instr(shown, word, 1, first - 8)) end;
  stop := regexp_instr(shown, word, start, 20, 1);
  return btrim(regexp_replace(substr(shown, start, case when stop = 0 then length(shown) else stop - start end), '[\t\n\r ]+', ' ', 'g'));
end $$;
