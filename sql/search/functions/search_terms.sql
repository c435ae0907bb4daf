-- Parses an owner's search into at most 16 terms: words, "phrases", and either with a leading `-` for exclusion. Skips
-- terms without any word. Each term has these queries:
--
-- - `exact` matches the term itself, or a number or date in any notation.
-- - `wide` also matches the term as a prefix, and words with its stem. If that finds less than a page, it matches the term
--   as any part of a word. If nothing matches, it allows one misspelling.
-- - `words` matches at least all that `wide` matches, using the index alone. It queries an `owned_vector`, so it
--   matches the words of a phrase in any order.
--
-- `is_phrase` is true if only positions tell what matches `wide`, and `is_partial` if `wide` lacks some parts of words.
create or replace function search_terms(p_owner integer, query text)
returns table (n integer, negated boolean, is_phrase boolean, is_partial boolean, exact tsquery, wide tsquery, words tsquery)
language plpgsql stable rows 3 as $$
declare
  max_parts constant integer := 1000;
  term text[];
  typed text;
  typed_words text[];
  single text;
  is_quoted boolean;
  dates tsquery;
  parts text[];
  hits bigint;
begin
  n := 0;
  for term in select regexp_matches(query, '(-?)(?:"([^"]*)"?|(\S+))', 'g') limit 16 loop
    negated := term[1] = '-';
    is_quoted := term[2] is not null;
    typed := coalesce(term[2], rtrim(term[3], '*'));
    typed_words := array_remove(search_words(typed), '');
    if cardinality(typed_words) = 0 then continue; end if;
    n := n + 1;
    is_partial := false;
    dates := (select search_any_of(array_agg(search_date_query(day))) from unnest(search_dates(typed)) day);
    exact := search_any_of(array[search_phrase(typed_words, false), dates]
      || array(select search_phrase(notation.words, false) from search_number(typed) notation));
    wide := exact;
    if not is_quoted then
      wide := search_any_of(array[exact, search_phrase(typed_words, true)]
        || array(select search_phrase(notation.words, true) from search_number(typed) notation));
    end if;
    single := case when cardinality(typed_words) = 1 and not is_quoted then typed_words[1] end;
    if single ~ '^[^0-9]{4,}$' and not search_is_pair(single) then
      wide := search_any_of(array[wide] || array(select search_phrase(array[stem], false) from search_stems(p_owner, single) stem));
    end if;
    -- Two ASCII letters occur everywhere, but two characters of other scripts can be a word.
    if not is_quoted and not negated and dates is null and not search_is_pair(typed_words[1])
      and (length(typed_words[1]) > 2 or length(typed_words[1]) = 2 and typed_words[1] ~ '[^\x01-\x7f]') then
      hits := search_count_hits(owned_query(p_owner, wide));
      if hits < 50 then
        parts := array(
          select word from search_word
          where owner_id = coalesce(p_owner, 0) and word like '%' || typed_words[1] || case when single is null then '' else '%' end
          order by length(word), word limit max_parts + 1);
        is_partial := cardinality(parts) > max_parts;
        if cardinality(parts) > 0 then
          wide := search_any_of(array[wide, concat_ws(' <-> ',
            (select format('(%s)', string_agg('''' || part || '''', ' | ')) from unnest(parts[:max_parts]) part),
            search_phrase(typed_words[2:], true)::text)::tsquery]);
        end if;
      end if;
      -- Excludes numbers, because another digit makes another number.
      if hits = 0 and length(single) >= 6 and single !~ '[0-9]' and search_count_hits(owned_query(p_owner, wide)) = 0 then
        wide := search_any_of(array[wide] || array(select search_phrase(array[word], false) from search_similar_words(p_owner, single) word));
      end if;
    end if;
    is_phrase := wide::text like '%<->%';
    words := owned_query(p_owner, wide);
    return next;
  end loop;
end $$;
