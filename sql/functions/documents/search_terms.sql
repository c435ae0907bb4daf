-- The terms of a search, at most 16: words, "phrases", and either with a leading `-` for what must not occur. `exact`
-- is the term itself; `wide` also matches it as the beginning or a part of a word. A term without any word is left out.
create or replace function search_terms(given text) returns table (n integer, negated boolean, exact tsquery, wide tsquery)
language plpgsql stable rows 3 as $$
declare
  term text[];
  bare text;
  part text;
begin
  n := 0;
  for term in select regexp_matches(given, '(-?)(?:"([^"]*)"?|(\S+))', 'g') limit 16 loop
    negated := term[1] = '-';
    bare := rtrim(coalesce(term[3], ''), '*');
    exact := case when term[2] is not null then phraseto_tsquery('folded', term[2]) else plainto_tsquery('folded', bare) end;
    if numnode(exact) = 0 then continue; end if;
    n := n + 1;
    wide := exact;
    -- A query's text ends with its last word, which `:*` makes a prefix.
    if term[3] is not null then wide := exact || (exact::text || ':*')::tsquery; end if;
    if term[3] is not null and numnode(exact) = 1 then
      select lexeme into part from unnest(to_tsvector('folded', bare));
      -- Two ASCII letters occur everywhere; two characters of other scripts can be a word.
      if length(part) > 2 or length(part) = 2 and part ~ '[^\x01-\x7f]' then
        wide := wide || coalesce((
          select string_agg(quoted_lexeme(word), ' | ')::tsquery from (
            select word from search_word
            where word like '%' || replace(replace(replace(part, '\', '\\'), '%', '\%'), '_', '\_') || '%'
            order by length(word), word limit 100) found), '');
      end if;
    end if;
    return next;
  end loop;
end $$;
